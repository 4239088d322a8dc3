"""Memory and time of training steps on a processor.

    python benchmarks/memory_worker.py --shape=minilm --method=lora
    python benchmarks/memory_worker.py --shape=minilm --remat

A process for each setting: the most memory that one has used does not fall
again. An encoder of random weights, batches of 32 texts of 128 tokens.
`peak_memory.py` runs it for several methods and for a peer.
"""

import argparse
import json
import resource
import time

import fusion_worker
import numpy as np

from tf_adapters import methods
from tf_adapters.data.batches import batch_plan

METHODS = {
    "houlsby": methods.Houlsby(units=64, activation="silu"),
    "pfeiffer": methods.Pfeiffer(units=48, activation="silu"),
    "lora": methods.LoRA(rank=8),
    "adapter_bias": methods.AdapterBias(),
}


def peak_bytes():
    """Returns the most memory that this process has had so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(trainer, steps):
    """Returns seconds and seconds of all threads, of the best step but one.

    Args:
        trainer: `Trainer` that is ready to train.
        steps: Number of steps, at least 2. The first builds the graph.
    """
    rows = np.arange(fusion_worker.BATCH_SIZE, dtype="int32")
    batch = batch_plan.Batch(rows, fusion_worker.TOKENS)
    clocks = (time.perf_counter, time.process_time)
    taken = []
    started = [clock() for clock in clocks]
    for losses, _ in trainer.train_loops(
        fusion_worker.make_examples(), [[batch]] * steps
    ):
        np.asarray(losses)  # Waits for the device.
        now = [clock() for clock in clocks]
        taken.append(np.subtract(now, started))
        started = now
    return np.min(taken[1:], axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=fusion_worker.SHAPES, required=True)
    parser.add_argument("--method", choices=METHODS, default="houlsby")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--remat", action="store_true")
    parser.add_argument("--steps", type=int, default=6)
    arguments = parser.parse_args()
    trainer = fusion_worker.make_trainer(
        arguments.shape,
        METHODS[arguments.method],
        arguments.precision,
        arguments.remat,
    )
    before = peak_bytes()
    seconds, processor = measure(trainer, arguments.steps)
    answer = {
        "seconds": seconds,
        "processor_seconds": processor,
        "peak_bytes": peak_bytes(),
        "bytes_before": before,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
