"""Tests a study with `--executor=jax`, whose runs train together."""

import gzip
import json
import os
from pathlib import Path
import re
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.fixtures import huggingface_folders
from tests.fixtures import studies
from tf_adapters.papers.studies.grid import plan as study_plan

pytestmark = [pytest.mark.integration, pytest.mark.slow]
pytest.importorskip("jax")

ROOT = Path(__file__).parents[2]
TASK = {"task": ["demo_sentiment"]}
RATE = "train.learning_rate"
HOULSBY = {"name": "houlsby", "units": 8, "train_layer_norms": False}
# Four epochs of three steps. The dropout of encoder and heads is on.
BASE = {
    "encoder": str(huggingface_folders.ONE_BLOCK),
    "backend": "jax",
    "data": {
        "batching": "fixed",
        "max_length": 16,
        "max_train_examples": 40,
        "max_validation_examples": 30,
    },
    "train": {"batch_size": 16, "epochs": 4, "validate_every_steps": 2},
}
STUDY = {
    "base": BASE,
    "grid": [
        {**TASK, "method": ["houlsby"], "seed": [0, 1], RATE: [1e-2, 3e-2]},
        {**TASK, "method": ["full", "fusion"], "seed": [0, 1], RATE: [1e-2]},
        # Its loss is not finite.
        {**TASK, "method": ["houlsby"], "seed": [0], RATE: [1e30]},
    ],
    "where": [
        {
            "when": {"method": "houlsby"},
            "set": {"method.units": 8, "method.train_layer_norms": False},
        },
        {
            "when": {"method": "fusion"},
            "set": {
                "train.early_stopping_patience": None,
                # The first member is one of the study's own runs.
                "members.tasks": ["demo_sentiment", "demo_entailment"],
                "members.settings": {
                    "method": HOULSBY,
                    "train": {**BASE["train"], "learning_rate": 1e-2},
                },
            },
        },
    ],
    "small": None,
}
# Trains each run of a study alone, in this process, which saves minutes.
ALONE = """
import pathlib
import sys
from tests import commands
from tests.fixtures import studies
from tf_adapters.launch import process_runner
from tf_adapters.papers.studies import study

def run(config_file, folder, log):
    status = commands.run(folder, config_file=str(config_file))
    print(f"status {status}", file=log, flush=True)
    return status

process_runner.ProcessRunner = lambda processes: run
options = studies.options(pathlib.Path(sys.argv[1]), model_dir=sys.argv[2])
sys.exit(study.run_studies(options, {"data": {}, "train": {}}, run))
"""


@pytest.fixture(scope="module", name="folders")
def _folders(tmp_path_factory):
    """Returns the folders of the study, trained together and run by run."""
    folder = tmp_path_factory.mktemp("study")
    path = studies.write(folder, **STUDY)
    _, (first, *_) = study_plan.load_study(path)
    failed = folder / "together/demo" / first.id / "error.txt"
    failed.parent.mkdir(parents=True)
    failed.write_text("of an earlier command\n")
    _run(
        *(str(ROOT / "train.py"), f"--study={path}", "--executor=jax"),
        f"--model_dir={folder / 'together'}",
    )
    _run("-c", ALONE, path, folder / "alone", KERAS_BACKEND="jax")
    return folder / "together/demo", folder / "alone/demo"


def _run(*arguments, **environment):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # The run whose loss is not finite has failed.
    assert done.returncode == 1 and "Traceback" not in done.stdout, done.stdout


def _finished(folder):
    """Returns the path of each finished run folder, by its relative path."""
    paths = (path.parent for path in folder.rglob("result.json"))
    return {str(path.relative_to(folder)): path for path in paths}


def _pairs(folders):
    together, alone = map(_finished, folders)
    # Eight of the study, and two members of its fusions.
    assert together.keys() == alone.keys() and len(alone) == 10
    return {name: (together[name], alone[name]) for name in alone}


def _results(pair):
    return [json.loads((path / "result.json").read_text()) for path in pair]


def test_trained_weights_are_equal(folders):
    for name, pair in _pairs(folders).items():
        found, expected = (
            load_file(path / "adapter/adapter.safetensors") for path in pair
        )
        assert found.keys() == expected.keys() and len(found) > 2
        for key, value in expected.items():
            # It changes no output. Its gradients are rounding errors, which
            # Adam makes large.
            if re.search("key.*bias", key):
                continue
            np.testing.assert_allclose(
                found[key], value, rtol=0, atol=1e-5, err_msg=f"{name} {key}"
            )


def test_adapters_know_their_task_and_metrics(folders):
    for pair in _pairs(folders).values():
        found, expected = (
            json.loads((path / "adapter/adapter_config.json").read_text())
            for path in pair
        )
        assert found["details"] == expected["details"]
        assert "accuracy" in found["details"]["validation"]


def test_metrics_are_equal(folders):
    keys = ("validation", "test", "best_step", "steps", "examples")
    results = [_results(pair) for pair in _pairs(folders).values()]
    for found, expected in results:
        for key in (*keys, "padding_share", "trained_weights"):
            assert found[key] == expected[key], key
        assert found["data_fingerprint"] == expected["data_fingerprint"]
    assert len({expected["best_step"] for _, expected in results}) > 2


def test_results_say_how_many_trained_together(folders):
    pairs = _pairs(folders)
    found = {name: _results(pair)[0] for name, pair in pairs.items()}
    assert {
        name.split("-")[1] if "-" in name else "member": result[
            "trained_together"
        ]
        for name, result in found.items()
    } == {"houlsby": 5, "full": 2, "fusion": 2, "member": 2}
    assert all("jax" in result["versions"] for result in found.values())


def _predictions(folder, split):
    path = folder / "predictions" / f"{split}.json.gz"
    return json.loads(gzip.decompress(path.read_bytes()))


@pytest.mark.parametrize("split", ["validation", "test"])
def test_predictions_are_equal(folders, split):
    for pair in _pairs(folders).values():
        found, expected = (_predictions(folder, split) for folder in pair)
        rows, expected_rows = found.pop("rows"), expected.pop("rows")
        assert found == expected and rows.keys() == expected_rows.keys()
        for key, values in expected_rows.items():
            # They have five decimals.
            np.testing.assert_allclose(
                rows[key], values, rtol=0, atol=1.1e-5, err_msg=key
            )


def test_the_error_of_an_earlier_command_is_removed(folders):
    errors = [path.parent.name for path in folders[0].rglob("error.txt")]
    (failed,) = errors
    assert failed not in _finished(folders[0])


def test_a_loss_that_is_not_finite_fails_alone(folders):
    """The other four runs of its group are in the tests above."""
    (found,), (expected,) = (
        list(folder.rglob("error.txt")) for folder in folders
    )
    assert found.parent.name == expected.parent.name
    text = found.read_text()
    # A step, or the validation after the last finite one, if it comes first.
    assert re.search(
        r"The (loss of step \d+ is nan|model's outputs are NaN)", text
    )
    assert re.search(r"(?i)lower (--learning_rate|learning rate)|a lower", text)


# Trains two runs as if TensorFlow were not installed.
WITHOUT_TENSORFLOW = """
import importlib.machinery
import pathlib
import sys

finder = importlib.machinery.PathFinder
find_spec = finder.find_spec

def find_others(name, *arguments):
    if name.startswith("tensorflow"):
        return None
    return find_spec(name, *arguments)

finder.find_spec = find_others
from tf_adapters.config import resolve
from tf_adapters.launch import planned_run
from tf_adapters.launch import together

base = resolve.merge(%r, {"task": "demo_sentiment", "method": "houlsby"})
configs = [resolve.resolve_config(base, {"seed": seed}) for seed in (0, 1)]
runs = [
    planned_run.Run(name, {}, config, planned_run.first_metrics(config))
    for name, config in zip("ab", configs)
]
together.run_missing(runs, pathlib.Path(sys.argv[1]))
assert not any(name.startswith("tensorflow") for name in sys.modules)
"""


def test_runs_are_trained_without_tensorflow(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TENSORFLOW % BASE, tmp_path / "runs"],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    results = list((tmp_path / "runs").glob("*/result.json"))
    assert len(results) == 2, done.stdout
    for path in results:
        result = json.loads(path.read_text())
        assert result["trained_together"] == 2
        assert "tensorflow" not in result["versions"]
