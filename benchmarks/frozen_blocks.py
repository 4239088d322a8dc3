"""Time of training steps that start behind frozen blocks.

    python benchmarks/frozen_blocks.py --shape=minilm --trained=1

`top_layers` with the last `--trained` blocks, on an encoder of random weights
without dropout, batches of 32 texts of 128 tokens. Steps of the whole encoder
and steps behind the kept output of the frozen blocks take turns.
"""

import argparse
from pathlib import Path
import time

import fusion_worker
import measurements
import numpy as np

from tf_adapters import methods
from tf_adapters.data.batches import batch_plan
from tf_adapters.runs import frozen_block_cache


def make_steps(shape, trained, keeps):
    """Returns a function that runs so many steps and returns their seconds.

    Args:
        shape: Name of one of `fusion_worker.SHAPES`.
        trained: Number of blocks that train.
        keeps: Whether steps start behind the kept output of the others.
    """
    trainer = fusion_worker.make_trainer(
        shape, methods.TopLayers(k=trained), "float32", dropout=0.0
    )
    examples = fusion_worker.make_examples()
    if keeps:
        examples = frozen_block_cache.cached(
            trainer, examples, "train", Path.cwd()
        )
    rows = np.arange(fusion_worker.BATCH_SIZE, dtype="int32")
    batch = batch_plan.Batch(rows, fusion_worker.TOKENS)

    def run(steps):
        started = time.perf_counter()
        for losses, _ in trainer.train_loops(examples, [[batch]] * steps):
            np.asarray(losses)  # Waits for the device.
        return (time.perf_counter() - started) / steps

    run(2)  # Builds the graph.
    return run


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=fusion_worker.SHAPES, required=True)
    parser.add_argument("--trained", type=int, default=1)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--steps", type=int, default=4)
    measurements.add_option(parser)
    arguments = parser.parse_args()
    shape, trained = arguments.shape, arguments.trained
    runs = {
        "whole encoder": make_steps(shape, trained, keeps=False),
        "behind kept blocks": make_steps(shape, trained, keeps=True),
    }
    seconds = {name: [] for name in runs}
    for _ in range(arguments.turns):
        for name, run in runs.items():
            seconds[name].append(run(arguments.steps))
    for name, values in seconds.items():
        low, middle, high = np.quantile(values, [0, 0.5, 1])
        print(f"{name}: {middle:.3f} s a step ({low:.3f} to {high:.3f})")
    whole, kept = map(np.median, seconds.values())
    print(f"{whole / kept:.2f} times as fast")
    case = f"{shape}, the last blocks: {trained}"
    whole, kept = seconds.values()
    row = measurements.row(case, "s a step", kept, whole, "whole encoder")
    measurements.write(arguments.output, [row])


if __name__ == "__main__":
    main()
