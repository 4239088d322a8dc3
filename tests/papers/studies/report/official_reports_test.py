"""Tests the reports of all official studies, with made-up results."""

import hashlib
import html

import pytest

from tests.fixtures import studies
from tf_adapters.config import task as config_task
from tf_adapters.data.rows import splits
from tf_adapters.papers.studies.grid import declaration
from tf_adapters.papers.studies.grid import plan as study_plan
from tf_adapters.papers.studies.report import cells as study_cells
from tf_adapters.papers.studies.report import files


def _value(*key):
    """Returns a number from 0.4 to 0.9 that depends on texts alone."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return 0.4 + int.from_bytes(digest[:2]) / 2**17


def _metrics(run, task, split):
    own = config_task.by_task(run.config)[task]
    names = (*config_task.declared_task(own).metrics, "loss")
    return {name: _value(run.id, task, split, name) for name in names}


def _result(run):
    first = next(iter(run.metrics))
    result = studies.finished(
        mean_metric=_value(run.id, "mean"),
        **{s: _metrics(run, first, s) for s in splits.EVALUATED},
    )
    metric = run.metrics[first]
    if metric.startswith("transfer/"):
        languages = {"en", "de", metric.partition("/")[2]}
        languages -= {"all", "target", "distant"}
        result["transfer"] = {
            "metric": "accuracy",
            **{name: _value(run.id, name) for name in ("all", "target")},
            "distant": _value(run.id, "distant"),
            "languages": {
                name: {"accuracy": _value(run.id, name)}
                for name in sorted(languages)
            },
        }
    if metric.startswith("method_report/"):
        name = metric.partition("/")[2]
        result["method_report"] = {name: _value(run.id, name)}
    if len(run.metrics) > 1:
        result["tasks"] = {
            task: {s: _metrics(run, task, s) for s in splits.EVALUATED}
            for task in run.metrics
        }
        result["data_fingerprint"] = {
            task: {"validation": task} for task in run.metrics
        }
    return result


# Thousands of runs, which take seconds to plan.
LARGE = ("houlsby2019_figure3", "houlsby2019_table2")
CASES = [
    pytest.param(
        path,
        id=path.stem,
        marks=[pytest.mark.slow] if path.stem in LARGE else [],
    )
    for path in sorted(declaration.STUDIES.glob("*.yaml"))
]


@pytest.mark.parametrize("path", CASES)
def test_an_official_study_can_be_reported(path, tmp_path):
    study, runs = study_plan.load_study(path)
    results = {run.id: _result(run) for run in runs}
    tables = study_cells.make_tables(
        study, runs, results, dict.fromkeys(results, "")
    )
    assert tables.complete
    assert all(cell["mean"] is not None for cell in tables.cells)
    text = files.write_study_report(
        path.stem, "command", study, runs, tables, tmp_path
    )
    page = html.unescape((tmp_path / "report.html").read_text())
    assert f"{len(runs)} finished of" in page or len(tables.runs) > len(runs)
    for sentence in (study.shows, *study.missing_data):
        assert (sentence or "") in page
    assert r"\begin{tabular}" in (tmp_path / "table.tex").read_text()
    _check_claims(study, page, text)
    _check_printed(study, page)


def _check_claims(study, page, markdown):
    for claim in study.claims:
        assert claim.says in page and claim.says in markdown
    of_runs = [claim for claim in study.claims if claim.of is None]
    tested = page.count("corrected p ")
    # Without predictions, a single pair of runs has a difference, but no p.
    single = page.count("1 pair without predictions")
    # All claims about runs are measured; figures are missing.
    assert tested + single == len(of_runs)


def _check_printed(study, page):
    if study.expected is None:
        return
    for row in study.expected.rows:
        for value in row.values:
            assert value is None or f"{value:.1f}" in page
    assert "measured" in page
