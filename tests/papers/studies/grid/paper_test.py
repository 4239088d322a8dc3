"""Tests a study's declarations about its paper: reading, checks, reduction."""

import re

import pytest

from tests.fixtures import studies
from tf_adapters.common.errors import ConfigError
from tf_adapters.papers.studies.grid import declared_runs
from tf_adapters.papers.studies.grid import paper

EXPECTED = {
    "columns": ["sst2", "cola", "average"],
    "rows": [
        {"method": "houlsby", "values": [94.0, 59.5, 76.75]},
        {
            "method": {"name": "head_only"},
            "values": [90, None, 70.1],
            "errors": [0.2, None, None],
        },
    ],
}
FIGURES = [
    {"analysis": "stability", "options": {"over": "seed"}},
    {
        "analysis": "similarity",
        "runs": {"method": "houlsby", "seed": [0, 1]},
        "name": "figure2_left",
    },
]
CLAIM = {
    "says": "Adapters are better than a head alone.",
    "higher": {"method": "houlsby"},
    "than": {"method": "head_only"},
    "where": {"task": ["sst2"]},
    "printed": 4,
}
OF_FIGURE = {
    "says": "Later blocks change more.",
    "of": "figure2_left",
    "value": "similarity",
    "higher": {"block": 1},
    "than": {"block": 6},
}
PAPER = {
    "paper": "he2021",
    "covers": ["table 2", "figure 2 left"],
    "shows": "Adapters beat a head alone.",
    "missing_data": ["The test labels are secret: GLUE's server has them."],
    "expected": EXPECTED,
    "figures": FIGURES,
    "claims": [CLAIM, OF_FIGURE],
}


def _plan(folder, block=None, **changes):
    return studies.plan(folder, block, **{**PAPER, **changes})


def test_all_keys_are_read(tmp_path):
    study, _ = _plan(tmp_path)
    assert (study.paper, study.covers) == ("he2021", PAPER["covers"])
    assert study.shows == PAPER["shows"]
    assert study.missing_data == PAPER["missing_data"]
    first, second = study.expected.rows
    assert first == paper.ExpectedRow(
        {"method": "houlsby"}, [94.0, 59.5, 76.75], None
    )
    assert second.runs == {"method": "head_only"}
    assert second.errors == [0.2, None, None]
    assert study.figures[0] == paper.Figure(
        "stability", {"over": "seed"}, None, "stability"
    )
    assert study.figures[1].name == "figure2_left"
    claim, of_figure = study.claims
    assert claim.printed == 4.0 and claim.where == {"task": ["sst2"]}
    assert of_figure.than == {"block": 6}


def test_a_study_of_no_paper_declares_nothing(tmp_path):
    study, _ = studies.plan(tmp_path)
    assert study.paper is None and study.expected is None
    assert study.covers == study.figures == study.claims == []


def test_a_cut_leaves_out_what_is_about_none_of_its_runs(tmp_path):
    small = {"task": "cola", "method": ["houlsby"], "seed": [2]}
    study, runs = _plan(tmp_path, "small", small=small)
    assert len(runs) == 1
    assert study.expected == paper.Expected(
        ["cola"], [paper.ExpectedRow({"method": "houlsby"}, [59.5], None)]
    )
    assert [figure.name for figure in study.figures] == ["stability"]
    # One lacks a side, the other one its figure.
    assert study.claims == []


def test_a_cut_keeps_the_average_of_the_papers_own_columns(tmp_path):
    two_cores = {"method": ["head_only", "houlsby"], "seed": [0, 1, 2, 3]}
    study, runs = _plan(tmp_path, "two_cores", two_cores=two_cores)
    assert len(runs) == 16
    whole, _ = _plan(tmp_path)
    assert study.expected == whole.expected
    assert study.claims == whole.claims


def test_printed_numbers_of_the_best_value_and_of_mnlis_other_half(tmp_path):
    row = {"method": "houlsby", "method.units": "best", "values": [1, 2]}
    expected = {"columns": ["mnli", "mnli_mismatched"], "rows": [row]}
    changes = {
        "grid": {"task": ["mnli"], "method": ["houlsby"], "method.units": [8]},
        "where": None,
        "expected": expected,
        "figures": None,
        "claims": None,
        "report": {"best_of": "method.units"},
    }
    study, _ = _plan(tmp_path, **changes)
    assert study.expected.rows[0].runs["method.units"] == "best"
    changes["report"] = None
    with pytest.raises(ConfigError, match="the study has none"):
        _plan(tmp_path, **changes)


def test_runs_are_found_by_every_setting_they_have(tmp_path):
    _, runs = _plan(tmp_path)

    def count(**wanted):
        return len(declared_runs.find_runs(wanted, runs))

    assert count() == 12
    assert count(method="houlsby") == 6
    assert count(**{"method.units": 8}) == 6  # From `where`.
    assert count(**{"train.batch_size": 16}) == 12  # From `base`.
    assert count(**{"data.max_length": 128}) == 12  # A default.
    assert count(seed=[0, 2], task="cola") == 4
    assert count(seed=7) == 0


def test_a_run_of_several_tasks_is_found_by_each(tmp_path):
    where = {"when": {"method": "multitask"}}
    where["set"] = {"method.tasks": ["sst2", "cola"]}
    grid = {"method": ["multitask"]}
    _, runs = studies.plan(tmp_path, grid=grid, where=[where], small=None)
    assert declared_runs.find_runs({"task": "cola"}, runs) == runs
    assert declared_runs.find_runs({"task": "rte"}, runs) == []


def test_two_cores_needs_a_block(tmp_path):
    with pytest.raises(ConfigError, match="--two_cores needs a block"):
        _plan(tmp_path, "two_cores")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"paper": "he2012"}, "Unknown paper `he2012`. Did you mean `he2021`"),
        ({"paper": None}, "`covers` needs `paper`"),
        ({"covers": [2]}, "`covers` must be a list of texts. Received in it"),
        ({"missing_data": "none"}, "`missing_data` must be of type list"),
        (
            {"expected": {"columns": ["sst3"], "rows": []}},
            "No run has `task` sst3, which `expected.columns` names. Those "
            "there are: sst2, cola, average",
        ),
        (
            {"expected": {"columns": ["sst2"], "rows": [{"values": [1, 2]}]}},
            "must be a list of 1, one for each of `expected.columns`. "
            "Received: [1, 2]",
        ),
        (
            {
                "expected": {
                    "columns": ["sst2"],
                    "rows": [{"values": [1], "errors": []}],
                }
            },
            "`errors` of the row {} of `expected` must be a list of 1",
        ),
        (
            {"expected": {"columns": ["sst2"], "rows": [{"values": ["1"]}]}},
            "must hold numbers or null. Received in it: '1'",
        ),
        (
            {"expected": {"columns": ["sst2"], "rows": [[1]]}},
            "A row of `expected.rows` reads",
        ),
        (
            {
                "expected": {
                    "columns": ["sst2"],
                    "rows": [{"method": "full", "values": [1]}],
                }
            },
            "is about runs with {'method': 'full'}, but the study has none",
        ),
        (
            {"figures": [{"analysis": "x", "options": {}, "run": {}}]},
            "Unknown setting `figures.run`. Did you mean `figures.runs`",
        ),
        (
            {"figures": [{"analysis": "x", "name": "a/b"}], "claims": None},
            "must be the name of a file without ending",
        ),
        ({"figures": [FIGURES[0]] * 2}, "Two figures are called `stability`"),
        (
            {
                "figures": [{"analysis": "x", "runs": {"seed": 9}}],
                "claims": None,
            },
            "The figure `x` is about runs with {'seed': 9}",
        ),
        (
            {"claims": [{**CLAIM, "higher": {"mehtod": "full"}}]},
            "Unknown setting `mehtod`. Did you mean `method`",
        ),
        (
            {"claims": [{**CLAIM, "than": {"method": "full"}}]},
            "The claim 'Adapters are better than a head alone.' is about runs "
            "with {'task': ['sst2'], 'method': 'full'}",
        ),
        ({"claims": [{**CLAIM, "printed": "4 %"}]}, "`claims.printed` must"),
        ({"claims": [{**OF_FIGURE, "value": None}]}, "needs both `of`"),
        (
            {"claims": [{**OF_FIGURE, "of": "figure2"}]},
            "Unknown figure in `claims.of`, `figure2`",
        ),
        (
            {"claims": [{**CLAIM, "printed": {"sst2": "4"}}]},
            "`claims.printed` must be a number, or a dict from tasks (or "
            "`average`) to numbers. Received: {'sst2': '4'}",
        ),
        (
            {"claims": [{**CLAIM, "within": float("nan")}]},
            "`within` of the claim",
        ),
        (
            {"claims": [{**CLAIM, "within": 1, "spreads": "seed"}]},
            "has `within` and `spreads`. A claim can have only one of them.",
        ),
        (
            {"claims": [{**CLAIM, "at_most_behind": 0}]},
            "`at_most_behind` of the claim 'Adapters are better than a head "
            "alone.' must be above zero. Received: 0.0",
        ),
        ({"claims": [{**CLAIM, "spreads": "sed"}]}, "Unknown setting `sed`"),
        (
            {"claims": [{**OF_FIGURE, "spreads": "seed"}]},
            "Leave out either `spreads` or `of`.",
        ),
        (
            {"claims": [{**CLAIM, "not_testable": {"smal": "no"}}]},
            "Unknown form in `claims.not_testable`, `smal`. Did you mean",
        ),
        (
            {"claims": [{**CLAIM, "not_testable": {"small": True}}]},
            "`claims.not_testable.small` must be a text",
        ),
        ({"two_cores": {"sead": [1]}}, "Unknown setting `sead`"),
    ],
)
def test_mistakes_are_said_before_a_run_starts(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=re.escape(message)) as error:
        _plan(tmp_path, **changes)
    assert "demo.yaml" in str(error.value)
