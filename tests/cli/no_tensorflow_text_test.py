"""The command where TensorFlow Text is not installed, as on Windows."""

import json
import os
from pathlib import Path
import subprocess
import sys

import pytest

from tests import commands

pytestmark = [pytest.mark.integration, pytest.mark.slow]

_PROGRAM = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "tensorflow_text":
            raise ModuleNotFoundError(f"{name} is refused", name=name)

sys.meta_path.insert(0, Refuse())
from tests.cli import subcommands

with open("films.csv", "w") as file:
    file.write("text,label\\n" + "a fine film,yes\\na dull one,no\\n" * 20)
small = ("--encoder=" + sys.argv[1], "--epochs=1", "--max_length=16")
columns = ("--text=text", "--label=label", "--model_dir=run")
print(subcommands.run("train", "--data=films.csv", *columns, *small))
print(subcommands.run("predict", "run", "a fine film"))
print(subcommands.run("export", "run", "--format=onnx"))
many = ("--adapters=run", "--model_dir=served")
print(subcommands.run("export", *many, "--format=onnx"))
print(subcommands.run("export", "run"))
print("tensorflow_text" in sys.modules)
"""


def test_texts_are_learned_and_exported_as_token_ids(tmp_path):
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, commands.ENCODER],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    numbers = [line for line in lines if line in ("0", "1", "True", "False")]
    assert numbers == ["0", "0", "0", "0", "1", "False"], (
        done.stdout + done.stderr
    )
    (answer,) = [json.loads(line) for line in lines if line[0] == "{"]
    assert answer["label"] in ("yes", "no")
    assert "need the package `tensorflow_text`" in done.stderr
    assert "Traceback" not in done.stderr
