"""Tests the forms of the official studies whose runs train together."""

import re

import pytest

from tf_adapters.papers.studies.grid import declaration
from tf_adapters.papers.studies.grid import plan as study_plan

pytest.importorskip("jax")
from tf_adapters.runs import together_checks

PATHS = [
    path
    for path in sorted(declaration.STUDIES.glob("*.yaml"))
    if "one_gpu" in declaration.read_study(path)[1]
]


def test_there_are_such_studies():
    assert len(PATHS) >= 8


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_all_runs_can_be_trained_together(path):
    _, runs = study_plan.load_study(path, "one_gpu")
    for run in runs:
        together_checks.check_settings(run.config)
    assert len({run.config.seed for run in runs}) == 20
    (count,) = re.findall(r"(\d+) with --one_gpu\.", path.read_text())
    assert int(count) == len(runs)
