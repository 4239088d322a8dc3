"""The page in examples/browser answers like the program next to the model."""

import json
from pathlib import Path
import shutil
import subprocess
import sys

import pytest

from tests.export import conftest
import tf_adapters
from tf_adapters.config import resolve
from tf_adapters.export import onnx_bank

EXAMPLE = Path(__file__).parents[1] / "examples" / "browser"
TOOLS = ("node", "npm", "chromium")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    pytest.mark.skipif(
        not all(map(shutil.which, TOOLS)), reason=f"needs {', '.join(TOOLS)}"
    ),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A copy of the example with its packages and a model of two tasks."""
    folder = tmp_path_factory.mktemp("browser")
    runs = []
    for task in ("sst2", "stsb"):
        method = tf_adapters.methods.Houlsby(units=4)
        runs.append(folder / task)
        *_, config = conftest.make_run(runs[-1], task, method)
        resolve.save_config(config, runs[-1] / "config.yaml")
    exported = onnx_bank.export_runs(runs, folder / "served")
    copy = folder / "page"
    shutil.copytree(
        EXAMPLE, copy, ignore=shutil.ignore_patterns("node_modules", "model")
    )
    shutil.copytree(exported, copy / "model")
    subprocess.run(
        ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=copy,
        check=True,
    )
    return copy


def _run(*command):
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=300
    )


@pytest.mark.parametrize(
    ("task", "texts"),
    [
        ("sst2", ["the film is Good"]),
        ("sst2", ["the bad film and the good plot " * 5]),
        ("stsb", ["Élan ΟΔΟΣ", "naïve 電影"]),
    ],
)
def test_a_text_typed_into_the_page_is_answered(page, task, texts):
    arguments = [f"--task={task}", *texts]
    shown = _run("node", str(page / "try_page.mjs"), *arguments)
    printed = _run(sys.executable, str(page / "model" / "run.py"), *arguments)
    found, expected = json.loads(shown.stdout), json.loads(printed.stdout)
    assert found.keys() == expected.keys()
    assert found.get("label") == expected.get("label")
    for name in {"probabilities", "score"} & expected.keys():
        assert found[name] == pytest.approx(expected[name], abs=1e-5)


@pytest.mark.parametrize(
    ("task", "texts", "message"),
    [
        ("sst2", ["a", "b"], "The model reads sentence. Received: 2 texts"),
        (
            "stsb",
            ["a"],
            "The model reads sentence1 and sentence2. Received: 1 text.",
        ),
    ],
)
def test_the_number_of_texts_is_that_of_the_task(page, task, texts, message):
    done = _run("node", str(page / "try_page.mjs"), f"--task={task}", *texts)
    assert done.returncode == 1
    assert message in done.stderr


def test_two_texts_that_are_too_long_are_refused(page):
    texts = ["the bad film " * 5] * 2
    done = _run("node", str(page / "try_page.mjs"), "--task=stsb", *texts)
    assert done.returncode == 1
    assert "the model reads at most 16. Shorten one of them." in done.stderr
