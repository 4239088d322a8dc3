"""Tests that flags set the settings that they stand for."""

import subprocess
import sys

from absl import flags
from absl.testing import flagsaver
import pytest

from tf_adapters.cli import flags as cli_flags


def _layer(*arguments):
    with flagsaver.flagsaver():
        flags.FLAGS(["train.py", *arguments])
        return cli_flags._flag_layer()


def test_flags_that_are_not_given_set_nothing():
    assert _layer() == {"data": {}, "train": {}}


def test_short_flags_are_settings():
    assert _layer(
        *("--task=sst2", "--method=lora", "--encoder=minilm", "--seed=3"),
        *("--learning_rate=0.5", "--epochs=2", "--batch_size=8"),
        *("--max_length=16", "--data_dir=d"),
        *("--pretrain_steps=4", "--precision=mixed_bfloat16"),
    ) == {
        "task": "sst2",
        "encoder": "minilm",
        "seed": 3,
        "method": {"name": "lora"},
        "train": {
            "learning_rate": 0.5,
            "epochs": 2,
            "batch_size": 8,
            "precision": "mixed_bfloat16",
        },
        "data": {"max_length": 16, "data_dir": "d"},
        "pretrain": {"steps": 4},
    }


def test_lists_join_the_method():
    assert _layer("--method=fusion", "--adapters=a,b")["method"] == {
        "name": "fusion",
        "adapters": ["a", "b"],
    }
    assert _layer("--tasks=a,b")["method"] == {"tasks": ["a", "b"]}


@pytest.mark.parametrize("command", [[], ["train"], ["eval", "runs/sst2"]])
def test_an_unknown_backend_is_refused_before_all_else(command):
    done = subprocess.run(
        [sys.executable, "-m", "tf_adapters", *command, "--backend=jaxx"],
        capture_output=True,
        text=True,
    )
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert "--backend=jaxx: value should be one of <tensorflow|jax>" in line
