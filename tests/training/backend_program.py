"""Trains a tiny model on the backend and devices of this process.

Writes the losses, the metrics, the trained weights and the outputs to an `.npz`
file, to be compared with those of another backend.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from tests import tiny
from tests.methods import cases
from tests.runs import toy_runs

# Settings of the cases: method, settings of training and of the data, strategy.
CASES = {
    "houlsby": ("houlsby", {}, {}),
    "full": ("full", {"accumulation_steps": 2}, {}),
    "lora": ("lora", {"clip_norm": None, "steps_per_loop": 2}, {}),
    "bias": ("adapter_bias", {"decay": "none"}, {}),
    "drop": ("pfeiffer", {"adapter_drop": (0, 1)}, {}),
    "fusion": ("fusion", {"validate_every_steps": 2}, {}),
    "fixed": (
        "pfeiffer",
        {},
        {"batching": "fixed", "length_buckets": [6], "max_length": 12},
    ),
}


def train(name, strategy):
    """Returns a dict of arrays: what the case's training came to."""
    method, settings, data = CASES[name]
    config = toy_runs.config(epochs=2, data=data, **settings)
    trainer = toy_runs.trainer(config, strategy, method=cases.EVERY[method])
    # Backends draw different initial weights.
    trained = dict(zip(trainer.names, trainer.variables, strict=True))
    tiny.randomize([v for n, v in trained.items() if "log_alpha" not in n], 0.1)
    outcome, records, _ = toy_runs.fit(trainer)
    outputs = trainer.predict(toy_runs.examples(seed=2))
    compilations = getattr(trainer.step, "num_compilations", 0)
    return {
        "losses": np.array(toy_runs.losses(records)),
        "metric": np.array(outcome["validation"]["accuracy"]),
        "outputs": np.stack(outputs),
        "compilations": np.array(compilations),
        "replicas": np.array(trainer.strategy.num_replicas_in_sync),
    } | {
        f"weights/{n}": v
        for n, v in zip(trained, tiny.values(trainer.variables), strict=True)
    }


def main():
    path, strategy, *names = sys.argv[1:]
    found = {name: train(name, strategy) for name in names}
    np.savez(
        path,
        **{
            f"{case}:{k}": v
            for case, one in found.items()
            for k, v in one.items()
        },
    )


if __name__ == "__main__":
    main()
