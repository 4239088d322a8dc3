"""Memory and time of training steps, with `train.remat` and without.

    python benchmarks/remat.py --shape=minilm
    python benchmarks/remat.py --shape=minilm --remat

A process each: what one has used at most does not fall again. Houlsby 64 on an
encoder of random weights, batches of 32 texts of 128 tokens.
"""

import argparse
import resource
import time

import fusion_worker
import numpy as np

from tf_adapters import methods
from tf_adapters.data.batches import batch_plan


def peak_megabytes():
    """Returns the most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=fusion_worker.SHAPES, required=True)
    parser.add_argument("--remat", action="store_true")
    parser.add_argument("--steps", type=int, default=6)
    arguments = parser.parse_args()
    trainer = fusion_worker.make_trainer(
        arguments.shape,
        methods.Houlsby(units=64),
        "float32",
        arguments.remat,
    )
    rows = np.arange(fusion_worker.BATCH_SIZE, dtype="int32")
    batch = batch_plan.Batch(rows, fusion_worker.TOKENS)
    before = peak_megabytes()
    seconds = []
    started = time.perf_counter()
    for losses, _ in trainer.train_loops(
        fusion_worker.make_examples(), [[batch]] * arguments.steps
    ):
        np.asarray(losses)  # Waits for the device.
        seconds.append(time.perf_counter() - started)
        started = time.perf_counter()
    # The first step builds the graph.
    print(
        f"{min(seconds[1:]):.2f} s a step at best, {peak_megabytes():,.0f} MB "
        f"at most, {before:,.0f} MB before the first step"
    )


if __name__ == "__main__":
    main()
