"""Trains a tiny model as one worker of those in TF_CONFIG, or alone.

    python -m tests.runs.worker_program <strategy> <file> \
        [--devices=<n>] [--parts=<n>]

with so many logical devices, by default TensorFlow's one, and each batch in so
many parts. Writes losses, weights and predictions to the file.
"""

import argparse

import numpy as np
from safetensors.numpy import save_file
import tensorflow as tf

from tests import tiny
from tests.runs import toy_runs


def main(strategy, path, devices, parts):
    if devices is not None:
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * devices,
        )
    # 21 examples do not divide by 8, nor the rest by 2.
    config = toy_runs.config(epochs=3, accumulation_steps=parts)
    trainer = toy_runs.trainer(config, strategy)
    _, records, _ = toy_runs.fit(trainer)
    weights = tiny.values(trainer.variables)
    save_file(
        {
            "losses": np.array(toy_runs.losses(records)),
            "accuracy": np.array(
                [
                    r["validation"]["accuracy"]
                    for r in records
                    if "validation" in r
                ]
            ),
            "outputs": np.stack(trainer.predict(toy_runs.examples(seed=2))),
            **{f"weight/{i}": weight for i, weight in enumerate(weights)},
        },
        path,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("strategy")
    parser.add_argument("path")
    parser.add_argument("--devices", type=int)
    parser.add_argument("--parts", type=int, default=1)
    main(**vars(parser.parse_args()))
