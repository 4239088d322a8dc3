"""Tests that TensorFlow's start-up lines are hidden, unless it fails."""

import os
from pathlib import Path
import subprocess
import sys

import pytest

ROOT = Path(__file__).parents[2]
NOISE = "I0000 noise of C++"
FAKE = f"""
import os, types
os.write(2, b"{NOISE}\\n")
config = types.SimpleNamespace(list_physical_devices=lambda: None)
"""


def _run(folder, tensorflow, *arguments):
    """Runs Python with a fake `tensorflow` module of this text."""
    (folder / "tensorflow.py").write_text(tensorflow)
    path = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("is_quiet", [True, False])
def test_start_up_lines_are_held_back(tmp_path, is_quiet):
    code = "import sys; from tf_adapters.cli import quiet; "
    code += "quiet.install(); " * is_quiet
    # A command may ask whether TensorFlow is installed before it imports it.
    code += "import importlib.util; importlib.util.find_spec('tensorflow'); "
    code += "import tensorflow; print('after', file=sys.stderr); "
    code += "print(tensorflow.__spec__.loader.get_source('tensorflow')[:1])"
    done = _run(tmp_path, FAKE, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "after\n" if is_quiet else NOISE in done.stderr


def test_what_was_held_back_is_shown_if_the_import_fails(tmp_path):
    code = "from tf_adapters.cli import quiet; quiet.install(); "
    done = _run(tmp_path, FAKE + "1 / 0", "-c", code + "import tensorflow")
    assert done.returncode == 1
    assert NOISE in done.stderr and "ZeroDivisionError" in done.stderr


def test_methods_are_listed_without_tensorflow(tmp_path):
    refused = "raise ImportError('tensorflow is refused')"
    done = _run(tmp_path, refused, "-m", "tf_adapters", "--list=methods")
    assert done.returncode == 0, done.stderr
    assert "houlsby" in done.stdout and not done.stderr


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("trian", "Did you mean `train`?"),
        ("--epoch=3", "Did you mean: epochs. See tf-adapters --help."),
    ],
)
def test_a_misspelt_word_is_one_sentence(tmp_path, argument, sentence):
    done = _run(tmp_path, "", "-m", "tf_adapters", argument)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
