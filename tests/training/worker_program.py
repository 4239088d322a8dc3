"""Trains a tiny model as one worker of those in TF_CONFIG, or alone.

    python -m tests.training.worker_program <strategy> <file>

Writes losses, weights and predictions to the file.
"""

import sys

import numpy as np
from safetensors.numpy import save_file

from tests import tiny
from tests.training import trainer_test


def main(strategy, path):
    # 21 examples do not divide by 8, nor the rest by 2.
    config = trainer_test._config(epochs=3)
    trainer = trainer_test._trainer(config, strategy)
    _, records, _ = trainer_test._fit(trainer)
    weights = tiny.values(trainer.variables)
    save_file(
        {
            "losses": np.array(trainer_test._losses(records)),
            "accuracy": np.array(
                [
                    r["validation"]["accuracy"]
                    for r in records
                    if "validation" in r
                ]
            ),
            "outputs": np.stack(
                trainer.predict(trainer_test._examples(seed=2))
            ),
            **{f"weight/{i}": weight for i, weight in enumerate(weights)},
        },
        path,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
