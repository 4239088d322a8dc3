"""Runs and adapters that earlier versions wrote are read, and answer alike."""

import json
from pathlib import Path
import re
import shutil

import pytest

from tests.cli import subcommands
from tests.fixtures import make_earlier_runs
from tf_adapters.text.loading import load

pytestmark = pytest.mark.integration

VERSIONS = sorted(make_earlier_runs.VERSIONS)


@pytest.fixture(name="run")
def _run(tmp_path, request):
    """Copies the run of a version, with the place of its encoder here."""
    stored = make_earlier_runs.FOLDER / request.param
    run = Path(shutil.copytree(stored, tmp_path / "run"))
    for path in (run / "config.yaml", run / "adapter" / "adapter_config.json"):
        text = path.read_text(encoding="utf-8")
        assert "{encoder}" in text
        new = text.replace("{encoder}", str(make_earlier_runs.ENCODER))
        path.write_text(new, encoding="utf-8")
    return run


def _predictions(run):
    lines = (run / "predictions.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in lines.splitlines()]


def _check(answers, expected):
    assert len(answers) == len(expected) == len(make_earlier_runs.TEXTS)
    for answer, old in zip(answers, expected, strict=True):
        assert answer["label"] == old["label"]
        assert answer["probabilities"] == pytest.approx(
            old["probabilities"], abs=1e-5
        )


def test_each_version_is_kept():
    folders = {path.name for path in make_earlier_runs.FOLDER.iterdir()}
    assert folders == set(VERSIONS)
    # Of a version that is being released, there is no commit to run yet.
    changelog = (make_earlier_runs.ROOT / "CHANGELOG.md").read_text("utf-8")
    _, *released = re.findall(r"^## (\S+)", changelog, re.M)
    assert released
    assert {name.replace(".", "_") for name in released} <= folders


@pytest.mark.parametrize(
    "run",
    [
        version
        if version in ("first", "0_1_0")
        else pytest.param(version, marks=pytest.mark.slow)
        for version in VERSIONS
    ],
    indirect=True,
)
def test_the_adapter_of_an_earlier_run_answers_as_then(run):
    model = load(run)
    expected = _predictions(run)
    _check(model.answer(list(make_earlier_runs.TEXTS)), expected)


@pytest.mark.slow
@pytest.mark.parametrize("run", VERSIONS, indirect=True)
def test_the_command_predicts_with_an_earlier_run(run, tmp_path, capsys):
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(make_earlier_runs.TEXTS) + "\n")
    assert subcommands.run("predict", run, f"--input={texts}") == 0
    lines = capsys.readouterr().out.splitlines()
    _check([json.loads(line) for line in lines], _predictions(run))
