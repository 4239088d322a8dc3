"""Starts a small run by its command, and compares such runs."""

import json
from pathlib import Path
import signal
import sys

import numpy as np
from safetensors.numpy import load_file
import tensorflow as tf

from tests.fixtures import huggingface_folders
from tf_adapters.runs import recovery

ROOT = Path(__file__).parents[2]
# Nine steps an epoch, two validations in each.
SETTINGS = {
    "task": "demo_sentiment",
    "encoder": str(huggingface_folders.ONE_BLOCK),
    "method": "houlsby",
    "data": {"max_train_examples": 140, "max_length": 24},
    "train": {
        "epochs": 3,
        "batch_size": 16,
        "validate_every_steps": 5,
        "early_stopping_patience": 20,
        "learning_rate": 3e-4,
        "snapshot_steps": 20,
    },
}
# Values of a record that a resumed run has otherwise.
_OF_PROCESS = ("time", "compiled_programs")
_CHECKED = ("validation", "best_step", "mean_metric", "steps", "examples")


def left(folder):
    """Returns what must be equal: weights, log, events, predictions, result.

    The weights are those of the adapter, and of each snapshot under its step.
    """
    records = [
        json.loads(line)
        for line in (folder / "metrics.jsonl").read_text().splitlines()
    ]
    events = [
        (event.step, value.tag)
        for path in sorted((folder / "tensorboard").iterdir())
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
    ]
    result = json.loads((folder / "result.json").read_text())
    weights = load_file(folder / "adapter" / "adapter.safetensors")
    snapshots = {
        f"{path.parent.name}/{name}": tensor
        for path in (folder / "snapshots").glob("*/adapter.safetensors")
        for name, tensor in load_file(path).items()
    }
    return (
        {**weights, **snapshots},
        [
            {k: v for k, v in record.items() if k not in _OF_PROCESS}
            for record in records
        ],
        events,
        [
            (path.name, path.read_bytes())
            for path in sorted((folder / "predictions").iterdir())
        ],
        {key: result.get(key) for key in (*_CHECKED, "test", "padding_share")},
    )


def check_equal(folder, whole):
    (weights, *rest), (wanted, *wanted_rest) = left(folder), left(whole)
    assert rest == wanted_rest
    assert weights.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(weights[name], array, err_msg=name)


def command(folder):
    overrides = [
        f"{section}.{key}={value}"
        for section in ("data", "train")
        for key, value in SETTINGS[section].items()
    ]
    return [
        sys.executable,
        str(ROOT / "train.py"),
        "--task=demo_sentiment",
        "--method=houlsby",
        f"--encoder={SETTINGS['encoder']}",
        f"--params_override={','.join(overrides)}",
        "--params_override=train.checkpoint_seconds=0",
        f"--model_dir={folder}",
    ]


def steps_done(folder):
    found = (folder / "checkpoints").glob("[0-9]*")
    return max((int(path.name) for path in found), default=0)


def stop_at(monkeypatch, step):
    """Sends SIGTERM during a step."""
    after_loop = recovery.Recovery.after_loop

    def with_signal(self, progress, trainer, checks):
        if progress.step == step:
            signal.raise_signal(signal.SIGTERM)
        after_loop(self, progress, trainer, checks)

    monkeypatch.setattr(recovery.Recovery, "after_loop", with_signal)
