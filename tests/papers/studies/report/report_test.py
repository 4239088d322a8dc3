"""Tests tables of a study: statistics, and selection on validation only."""

import csv

import numpy as np
import pytest

from tests.fixtures import studies
from tf_adapters.launch.progress_lines import counted
from tf_adapters.papers.studies.report import cells as study_cells
from tf_adapters.papers.studies.report import files

GRID = {
    "task": ["sst2", "cola"],
    "method": ["houlsby", "head_only"],
    "seed": [0, 1, 2, 3],
}
RATES = {"train.learning_rate": [1.0e-4, 1.0e-3, 1.0e-2]}


def _tables(*args, **changes):
    """Returns tables of results from a function of a `Run`."""
    return _report(*args, **changes)[0]


def _markdown(*args, **changes):
    """Returns the text of `table.md`, without the spaces that align it."""
    return _report(*args, **changes)[1]


def _report(folder, score, lacking=(), errors=None, **changes):
    changes = {"grid": GRID, "small": None, **changes}
    study, runs = studies.plan(folder, **changes)
    results = {
        run.id: None if index in lacking else studies.finished(**score(run))
        for index, run in enumerate(runs)
    }
    errors = {run.id: (errors or {}).get(i, "") for i, run in enumerate(runs)}
    return _written(folder, study, runs, results, errors)


def _written(folder, study, runs, results, errors):
    tables = study_cells.make_tables(study, runs, results, errors)
    files.write_tables(tables, folder)
    text = files.write_study_report(
        "demo", "command", study, runs, tables, folder
    )
    return tables, studies.squeezed(text)


def _random_scores():
    generator = np.random.default_rng(0)

    def score(run):
        validation, test = generator.uniform(size=2)
        return {
            "validation": {run.metric: validation, "other": 0.0},
            "test": {run.metric: test},
        }

    return score


def _cell(tables, **keys):
    (cell,) = (
        cell
        for cell in tables.cells
        if all(cell[key] == value for key, value in keys.items())
    )
    return cell


@pytest.mark.parametrize("split", ["validation", "test"])
def test_statistics_over_seeds_are_numpys(tmp_path, split):
    tables = _tables(tmp_path, _random_scores(), report={"split": split})
    for method in GRID["method"]:
        for task in GRID["task"]:
            values, validation = (
                np.array(
                    [
                        row[name]
                        for row in tables.runs
                        if (row["method"], row["task"]) == (method, task)
                    ]
                )
                for name in (split, "validation")
            )
            cell = _cell(tables, method=method, task=task)
            assert cell["n"] == 4
            np.testing.assert_allclose(
                [cell["mean"], cell["standard_deviation"], cell["median"]],
                [values.mean(), values.std(ddof=1), np.median(values)],
                rtol=1e-12,
            )
            # The test score of the best seed on validation, not of the test.
            assert cell["best"] == values[validation.argmax()]


@pytest.mark.parametrize("aggregate", ["mean", "standard_error", "best"])
def test_a_table_shows_its_aggregate(tmp_path, aggregate):
    report = {"split": "test", "aggregate": aggregate}
    tables, text = _report(tmp_path, _random_scores(), report=report)
    shown = []
    for task in GRID["task"]:
        cell = _cell(tables, method="houlsby", task=task)
        spread = 100 * cell["standard_deviation"]
        if aggregate == "standard_error":
            spread /= 2  # Four seeds.
        value = cell["best" if aggregate == "best" else "mean"]
        shown.append((100 * value, f" ± {spread:.1f}"))
    cells = " | ".join(
        f"{value:.1f}" + ("" if aggregate == "best" else spread)
        for value, spread in shown
    )
    average = np.mean([value for value, _ in shown])
    assert f"| {cells} | {average:.1f} |" in text


def test_one_seed_has_no_deviation(tmp_path):
    grid = {"task": ["sst2"], "method": ["houlsby"], "seed": [0]}
    tables, text = _report(
        tmp_path,
        lambda run: {"validation": {"accuracy": 0.8125}},
        grid=grid,
        where=None,
    )
    assert tables.cells[0]["standard_deviation"] is None
    assert "| houlsby | 1 % | 81.2 | 81.2 |" in text


def _contradicting(run):
    """Validation prefers 1e-3 on average, 1e-2 in one seed; test, 1e-4."""
    rate, seed = run.config.train.learning_rate, run.config.seed
    validation = {1e-4: 0.60, 1e-3: 0.80, 1e-2: 0.70}[rate]
    if rate == 1e-2 and seed == 3:
        validation = 0.95
    test = {1e-4: 0.99, 1e-3: 0.50, 1e-2: 0.90}[rate]
    return {
        "validation": {run.metric: validation},
        "test": {run.metric: test + 0.001 * seed},
    }


@pytest.mark.parametrize("split", ["validation", "test"])
def test_selection_sees_validation_only(tmp_path, split):
    tables = _tables(
        tmp_path,
        _contradicting,
        select_over=RATES,
        report={"split": split},
    )
    assert len(tables.runs) == 48 and len(tables.cells) == 4
    for cell in tables.cells:
        assert cell["train.learning_rate"] == 1e-3
        expected = {"validation": 0.80, "test": 0.5015}[split]
        assert cell["mean"] == pytest.approx(expected, abs=1e-12)


def test_selection_is_by_what_selects_checkpoints(tmp_path):
    def score(run):
        loss = run.config.train.learning_rate
        values = {"accuracy": 0.9 - 10 * loss, "matthews": 0.0, "loss": loss}
        return {"validation": values}

    base = {**studies.STUDY["base"], "train.select_by": "accuracy"}
    base["train.evaluate_loss"] = True
    for metric, shown in (("loss", "loss"), (None, "matthews")):
        tables = _tables(
            tmp_path,
            score,
            base=base,
            select_over=RATES,
            report={"metric": metric},
        )
        cell = _cell(tables, method="houlsby", task="cola")
        assert cell["train.learning_rate"] == 1e-4
        assert cell["metric"] == shown


def test_selection_is_made_for_each_cell(tmp_path):
    def score(run):
        best = 1e-4 if run.config.task == "cola" else 1e-2
        value = 0.9 if run.config.train.learning_rate == best else 0.5
        return {"validation": {run.metric: value}}

    tables = _tables(tmp_path, score, select_over=RATES)
    chosen = {c["task"]: c["train.learning_rate"] for c in tables.cells}
    assert chosen == {"cola": 1e-4, "sst2": 1e-2}


def test_a_candidate_with_fewer_seeds_cannot_win(tmp_path):
    grid = {"task": ["sst2"], "method": ["houlsby"], "seed": [0, 1]}

    def score(run):
        rate = run.config.train.learning_rate
        return {"validation": {"accuracy": 0.9 if rate == 1e-2 else 0.5}}

    # The grid's last run: seed 1, rate 1e-2.
    tables, text = _report(
        tmp_path,
        score,
        lacking=[5],
        grid=grid,
        where=None,
        select_over=RATES,
    )
    (cell,) = tables.cells
    assert cell["train.learning_rate"] == 1e-4
    assert cell["n"] == 2
    assert "(5 of 6 runs)" in text


def test_a_further_row_has_the_best_value_of_each_column(tmp_path):
    values = {
        ("sst2", 8): (0.9, 0.1),
        ("sst2", 64): (0.8, 0.2),
        ("cola", 8): (0.3, 0.7),
        ("cola", 64): (0.4, 0.6),
    }

    def score(run):
        key = run.config.task, getattr(run.config.method, "units", None)
        validation, test = values.get(key, (0.5, 0.5))
        return {
            "validation": {run.metric: validation},
            "test": {run.metric: test},
        }

    tables, text = _report(
        tmp_path,
        score,
        grid=[
            {"method": ["head_only"], "task": ["sst2", "cola"]},
            {
                "method": ["houlsby"],
                "task": ["sst2", "cola"],
                "method.units": [8, 64],
            },
        ],
        where=None,
        report={"split": "test", "best_of": "method.units"},
    )
    rows = ["| head_only | | 1 % | 50.0 | 50.0 | 50.0 |"]
    rows += ["| houlsby | 8 | 1 % | 10.0 | 70.0 | 40.0 |"]
    rows += ["| houlsby | 64 | 1 % | 20.0 | 60.0 | 40.0 |"]
    # On validation 8 is better on SST-2, and 64 on CoLA.
    rows += ["| houlsby | best | 1 % | 10.0 | 60.0 | 35.0 |"]
    found = text.split("\n")
    assert [row for row in rows if row in found] == rows
    cell = _cell(tables, task="cola", **{"method.units": "best"})
    assert cell["chosen method.units"] == 64
    # Every run is listed once.
    assert len(tables.runs) == 6


def test_the_mismatched_half_of_mnli_is_a_column(tmp_path):
    def score(run):
        found = {"validation": {run.metric: 0.5}}
        if run.config.task == "mnli":
            found["validation_mismatched"] = {"accuracy": 0.7}
        return found

    grid = {"task": ["mnli", "sst2"], "method": ["houlsby"], "seed": [0]}
    tables, text = _report(tmp_path, score, grid=grid, where=None)
    assert "| mnli_mismatched (accuracy) | average |" in text
    assert "| houlsby | 1 % | 50.0 | 50.0 | 70.0 | 56.7 |" in text
    assert len(tables.runs) == 2


_BY_LANGUAGE = {
    "rows": ["task", "method"],
    "columns": "data.eval_languages",
    "split": "test",
}


def test_each_language_is_a_column(tmp_path):
    def score(run):
        own = {"en": {"accuracy": 0.8}, "de": {"accuracy": 0.6}}
        averages = {"all": 0.7, "target": 0.6}
        transfer = {"metric": "accuracy", "languages": own, **averages}
        return {"validation": {run.metric: 0.5}, "transfer": transfer}

    tables = _tables(
        tmp_path,
        score,
        grid={"task": ["xnli"], "method": ["houlsby"], "seed": [0]},
        base={"encoder": "minilm", "data.eval_languages": ["en", "de"]},
        where=None,
        report=_BY_LANGUAGE,
        expected={
            "columns": ["target", "de"],
            "rows": [{"method": "houlsby", "values": [61.0, 62.0]}],
        },
    )
    found = {c["data.eval_languages"]: c["mean"] for c in tables.cells}
    assert found == {"all": 0.7, "target": 0.6, "en": 0.8, "de": 0.6}
    assert len(tables.runs) == 1


def test_columns_of_languages_say_what_is_missing(tmp_path):
    def score(run):
        own = {"en": {"accuracy": 0.8}, "de": {"accuracy": 0.6}}
        transfer = {"metric": "accuracy", "languages": own, "all": 0.7}
        return {"validation": {run.metric: 0.5}, "transfer": transfer}

    tables, text = _report(
        tmp_path,
        score,
        lacking=[1],
        grid={"task": ["xnli"], "method": ["houlsby"], "seed": [0, 1]},
        base={"encoder": "minilm", "data.eval_languages": ["en", "de"]},
        where=None,
        report=_BY_LANGUAGE,
    )
    assert [c["data.eval_languages"] for c in tables.cells] == [
        *("all", "en", "de"),
    ]
    assert "| 70.0 (1 of 2 runs) | 80.0 (1 of 2 runs) | 60.0 (1 of" in text
    # A mean of averages and languages would mean nothing.
    assert "average" not in text


def test_the_mismatched_column_says_what_is_missing(tmp_path):
    def score(run):
        splits = ("validation", "validation_mismatched")
        return {split: {run.metric: 0.5} for split in splits}

    grid = {"task": ["mnli"], "method": ["houlsby"], "seed": [0, 1]}
    _, text = _report(tmp_path, score, lacking=[1], grid=grid, where=None)
    assert text.count("50.0 (1 of 2 runs)") == 2


def test_pivot_has_the_metric_of_each_task_and_the_average(tmp_path):
    def score(run):
        value = {"sst2": 0.9, "cola": 0.5}[run.config.task]
        return {"validation": {run.metric: value + 0.02 * run.config.seed}}

    text = _markdown(tmp_path, score)
    assert (
        "| method | trained | sst2 (accuracy) | cola (matthews) | average |"
    ) in text
    # Deviation of 0, 2, 4, 6: the root of 20 / 3.
    assert "| houlsby | 1 % | 93.0 ± 2.6 | 53.0 ± 2.6 | 73.0 |" in text
    assert "missing" not in text and "\\*" not in text


def test_a_table_may_have_one_row_without_a_key(tmp_path):
    def score(run):
        return {"validation": {run.metric: 0.5}}

    grid = {"task": ["sst2", "cola"], "seed": [0]}
    base = {"encoder": "minilm", "method": "houlsby"}
    text = _markdown(tmp_path, score, grid=grid, where=None, base=base)
    assert "| trained | sst2 (accuracy) | cola (matthews) | average |" in text
    assert "| 1 % | 50.0 | 50.0 | 50.0 |" in text


def test_what_is_missing_or_failed_is_said(tmp_path):
    tables, text = _report(
        tmp_path,
        _random_scores(),
        lacking=[0, *range(8, 12)],
        errors={0: "NaN"},
    )
    assert "**5 of 16 runs are missing, 1 of them failed.**" in text
    assert "(3 of 4 runs)" in text
    assert not tables.complete
    row = next(line for line in text.split("\n") if "| houlsby" in line)
    assert "| - (0 of 4 runs) | - |" in row  # No average of half a row.
    states = [run["state"] for run in tables.runs]
    assert states.count("failed") == 1 and states.count("missing") == 4
    assert tables.runs[0]["error"] == "NaN"


@pytest.mark.parametrize("commit", ["abc1234+changes", None])
def test_results_from_a_changed_source_are_marked(tmp_path, commit):
    def score(run):
        changed = run.config.task == "sst2" and run.config.seed == 2
        return {
            "validation": {run.metric: 0.5},
            "commit": commit if changed else "abc1234",
        }

    text = _markdown(tmp_path, score)
    assert "| houlsby | 1 % | 50.0 ± 0.0\\* | 50.0 ± 0.0 | 50.0 |" in text
    assert f"abc1234 (14 runs); {commit or 'unknown'} (2 runs)" in text
    assert "do not report it" in text


def test_runs_on_other_validation_data_are_reported_apart(tmp_path):
    def score(run):
        other = run.point["method"] == "houlsby" and run.config.task == "cola"
        return {
            "validation": {run.metric: 0.5},
            "data_fingerprint": {"validation": "f11" if other else "f00"},
        }

    text = _markdown(tmp_path, score)
    assert text.count("Not comparable: cola") == 4
    assert "Not comparable: sst2" not in text


@pytest.mark.parametrize(
    ("keep", "rates", "selected"),
    [
        ("best", None, "checkpoints"),
        ("last", None, "nothing"),
        ("last", RATES, "hyperparameters"),
    ],
)
def test_what_was_selected_on_validation_is_said(
    tmp_path, keep, rates, selected
):
    text = _markdown(
        tmp_path,
        _random_scores(),
        base={"train.keep": keep},
        where=None,
        select_over=rates,
    )
    assert f"Selected on validation: {selected}." in text


def test_reports_of_the_method_are_averaged(tmp_path):
    def score(run):
        return {
            "validation": {run.metric: 0.5},
            "method_report": {"gates_exactly_zero": run.config.seed / 4},
            "pretraining": {"masked_lm_loss_after": 2.0 + run.config.seed},
        }

    tables, text = _report(tmp_path, score)
    assert tables.cells[0]["gates_exactly_zero"] == 0.375
    assert tables.cells[0]["masked_lm_loss_after"] == 3.5
    assert "gates_exactly_zero" in text


def test_settings_of_all_grids_stand_before_the_metric(tmp_path):
    grid = [
        {"method": ["head_only"], "seed": [0]},
        {"method": ["houlsby"], "method.units": [2], "seed": [0]},
    ]
    base = {**studies.STUDY["base"], "task": "sst2"}
    where = {"where": None, "grid": grid, "base": base}
    _report(tmp_path, _random_scores(), **where)
    header = (tmp_path / "runs.csv").read_text().split("\n")[0].split(",")
    assert header.index("method.units") < header.index("metric")


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 runs"), (1, "1 run"), (1200, "1,200 runs")]
)
def test_numbers_are_counted_in_words(number, words):
    assert counted(number, "run") == words


def test_files_hold_all_rows(tmp_path):
    tables, text = _report(tmp_path, _random_scores(), lacking=[3])
    with (tmp_path / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 16
    assert float(rows[0]["validation"]) == tables.runs[0]["validation"]
    assert rows[3]["validation"] == "" and rows[3]["state"] == "missing"
    assert rows[0]["commit"] == "abc1234"
    with (tmp_path / "table.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert [float(c["mean"]) for c in cells] == [
        c["mean"] for c in tables.cells
    ]
    assert studies.squeezed((tmp_path / "table.md").read_text()) == text


def test_a_run_of_several_tasks_fills_the_column_of_each(tmp_path):
    grid = [
        {"task": ["sst2", "cola"], "method": ["houlsby"]},
        {"method": ["multitask"]},
    ]
    where = {
        "when": {"method": "multitask"},
        "set": {"method.tasks": ["sst2", "cola"]},
    }
    report = {"rows": "method", "columns": "task"}
    study, planned = studies.plan(
        tmp_path, grid=grid, report=report, where=[where], small=None
    )
    values = {"sst2": {"accuracy": 0.75}, "cola": {"matthews": 0.25}}
    results = {}
    for run in planned:
        result = studies.finished(validation=values.get(run.config.task, {}))
        if run.metric == "mean":
            own = {
                task: {"validation": {k: v + 0.1 for k, v in metrics.items()}}
                for task, metrics in values.items()
            }
            result |= {"validation": {"mean": 0.6}, "tasks": own}
            result["data_fingerprint"] = {
                task: {"validation": "f00"} for task in own
            }
        results[run.id] = result
    errors = dict.fromkeys(results, "")
    tables, text = _written(tmp_path, study, planned, results, errors)
    lines = [line for line in text.splitlines() if "| multitask" in line]
    assert lines[0].endswith("| 85.0 | 35.0 | 60.0 |")
    assert tables.complete and len(tables.runs) == 4


def test_columns_may_be_settings_of_all_runs_or_lists(tmp_path):
    def score(run):
        return {"validation": {run.metric: 0.5}}

    grid = {"method": ["houlsby"], "seed": [0]}
    plain = {"where": [], "base": {"task": "cola", "encoder": "minilm"}}
    text = _markdown(tmp_path, score, grid=grid, **plain)
    assert "| method | trained | cola (matthews) | average |" in text
    grid = {"task": ["sst2"], "method": ["houlsby"]}
    grid |= {"method.leave_out": [[], [0, 1]]}
    report = {"rows": ["method", "task"], "columns": "method.leave_out"}
    plain = {"where": [], "base": {"encoder": "minilm"}, "report": report}
    text = _markdown(tmp_path, score, grid=grid, **plain)
    assert "| [] (accuracy) | [0, 1] (accuracy) |" in text


TRANSFER = {
    "metric": "accuracy",
    "all": 0.5,
    "target": 0.4,
    "languages": {"de": {"split": "test", "accuracy": 0.3}},
}


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("mean_metric", 0.7), ("transfer/target", 0.4), ("transfer/de", 0.3)],
)
def test_what_is_of_no_split_can_be_shown(tmp_path, metric, expected):
    validation = {"accuracy": 1.0, "matthews": 1.0}
    result = {"validation": validation, "mean_metric": 0.7}
    tables = _tables(
        tmp_path,
        lambda run: {**result, "transfer": TRANSFER},
        report={"metric": metric},
    )
    assert {row["validation"] for row in tables.runs} == {expected}
    assert {row["transfer/all"] for row in tables.runs} == {0.5}
    assert _cell(tables, method="houlsby", task="sst2")["mean"] == expected


def test_the_share_that_trains_is_without_the_head(tmp_path):
    tables, text = _report(
        tmp_path,
        lambda run: {"validation": {run.metric: 0.5}, "head_weights": 400},
    )
    # 600 of 100,000.
    assert "| houlsby | 0.6 % |" in text
