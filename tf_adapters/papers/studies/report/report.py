"""From the results of a study's runs to its tables: pure functions.

A cell of the table is a value of the row keys and the column key. Where the
study selects over hyper-parameters, a cell shows the candidate whose mean over
seeds of the metric on validation is best; test metrics play no part in that.
"""

import collections
import csv
import dataclasses
import io
import itertools
import json
from pathlib import Path
import statistics

from tf_adapters.common.errors import UserError
from tf_adapters.common.text_files import replace_text
from tf_adapters.data.rows.splits import EVALUATED
from tf_adapters.papers.studies.grid import further_cells
from tf_adapters.papers.studies.grid import plan as study_plan
from tf_adapters.papers.studies.grid import report_keys
from tf_adapters.papers.studies.report import markdown as markdown_lib

# Parts of a result whose numbers are averaged over seeds.
_REPORTED = ("method_report", "pretraining")
_NUMBERS = ("trained_weights", "head_weights", "encoder_weights", "seconds")
_NUMBERS += ("best_step", "mean_metric")


@dataclasses.dataclass(frozen=True)
class Tables:
    """The tables of a study.

    Attributes:
        markdown: Text of the whole report.
        cells: List of dicts, one for each cell: statistics over seeds.
        runs: List of dicts, one for each run.
        complete: Whether all runs are finished.
    """

    markdown: str
    cells: list
    runs: list
    complete: bool


def make_report(name, study, runs, results, errors, command, folders=None):
    """Returns the `Tables` of a study.

    Args:
        name: Name of the study.
        study: `Study`.
        runs: List of `Run`.
        results: Dict from run id to `result.json`, or `None` if unfinished.
        errors: Dict from run id to why the run failed, or "".
        command: Command line to show.
        folders: Dict from run id to the run's folder, seen from the study's.
            Defaults to folders of their own.
    """
    folders = folders or {run.id: run.id for run in runs}
    rows = [
        {**row, "folder": folders[run.id]}
        for run in runs
        for row in run_rows(run, results[run.id], errors[run.id])
    ]
    cells = make_cells(rows, study.report, study.select_over)
    text = markdown_lib.markdown_report(
        name, command, study.report, cells, rows
    )
    complete = all(row["state"] == "finished" for row in rows)
    return Tables(text, cells, rows, complete)


def write_report(tables, folder):
    """Writes `table.md`, `table.csv` and `runs.csv`."""
    folder = Path(folder)
    # All of its runs may lie in folders beside.
    folder.mkdir(parents=True, exist_ok=True)
    write_markdown(tables, folder)
    write_csv(folder / "table.csv", tables.cells)
    write_csv(folder / "runs.csv", tables.runs, _settings(tables.runs))


def write_markdown(tables, folder):
    """Writes `table.md`."""
    replace_text(Path(folder) / "table.md", tables.markdown + "\n")


def _settings(rows):
    """Returns what stands before `metric`, of every grid of the study."""
    return [
        key
        for row in rows
        for key in itertools.takewhile(lambda key: key != "metric", row)
    ]


def write_csv(path, rows, names=()):
    """Writes dicts as the rows of a CSV file.

    Args:
        path: Path of the file.
        rows: List of dicts, which may lack some of the columns.
        names: Of columns that are first, and there if no row has them.
    """
    keys = (key for row in rows for key in row)
    names = list(dict.fromkeys((*names, *keys)))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    replace_text(path, text.getvalue())


def run_rows(run, result, error=""):
    """Returns all that the tables need of one run: a flat dict for each task.

    A run has one task, or, with method `multitask`, several.
    """
    rows = []
    for task, metric in run.metrics.items():
        # Of several tasks, or named in `base`, it is no part of the point.
        point = {"task": task, **run.point}
        if len(run.metrics) > 1:
            point["task"] = task
        state = "failed" if error else "missing"
        row = {"run": run.id, "state": state, **point, "metric": metric}
        if result is None:
            rows.append({**row, "error": error})
            continue
        own = result if len(run.metrics) == 1 else _of_task(result, task)
        row |= _finished_row(run, task, metric, own)
        if row["selection"] is None:
            raise UserError(
                f"The result.json of run {run.id} lacks the metric of task "
                f"`{task}` on validation that its weights were chosen by: it "
                "is damaged. Remove it to train the run again."
            )
        rows.append(row)
    return rows


def _of_task(result, task):
    """Returns what the result of several tasks says of one."""
    return {
        **result,
        **result.get("tasks", {}).get(task, {}),
        "data_fingerprint": result.get("data_fingerprint", {}).get(task, {}),
    }


def _finished_row(run, task, metric, result):
    row = {"state": "finished"}
    transfer = _transfer(result)
    for split in EVALUATED:
        row[split] = _value_of(metric, split, result, transfer)
    selecting = study_plan.selecting_metric(run.config, task)
    row["selection"] = result.get("validation", {}).get(selecting)
    for key in _NUMBERS:
        row[key] = result.get(key)
    row |= _provenance(result)
    for split in EVALUATED:
        for name, value in result.get(split, {}).items():
            row[f"{split}/{name}"] = value
    reported = {part: result.get(part, {}) for part in _REPORTED}
    for part, values in {**reported, "transfer": transfer}.items():
        for key, value in values.items():
            row[f"{part}/{key}"] = value
    low_resource = run.config.data.low_resource
    row["data"] = f"{task}, seed {run.config.seed}, {low_resource}"
    fingerprint = result.get("data_fingerprint", {}).get("validation")
    row["validation_fingerprint"] = fingerprint
    return {**row, "error": ""}


def _value_of(metric, split, result, transfer):
    """Returns what a table shows of a run; some of it is of no split."""
    if metric == "mean_metric":
        return result.get(metric)
    part, _, name = metric.partition("/")
    if part == "transfer":
        return transfer.get(name)
    if part == "method_report":
        return result.get(part, {}).get(name)
    return result.get(split, {}).get(metric)


def _transfer(result):
    """Returns the averages over languages and each one's, by name."""
    found = result.get("transfer")
    if found is None:
        return {}
    averages = {k: v for k, v in found.items() if isinstance(v, float)}
    return averages | {
        language: values[found["metric"]]
        for language, values in found["languages"].items()
    }


def _provenance(result):
    commit = result.get("commit")
    versions = result.get("versions", {})
    return {
        "commit": commit,
        "changed": commit is None or commit.endswith("+changes"),
        "versions": ", ".join(f"{k} {v}" for k, v in versions.items()),
        "device": result.get("device"),
    }


def make_cells(rows, report, select_over=()):
    """Returns the cells of a study's table, each a dict.

    Args:
        rows: List of dicts, from `run_rows`.
        report: `Report`.
        select_over: Keys of which each cell takes its best values.
    """
    keys = report_keys.cell_keys(report)
    rows, select_over = _with_further(rows, report, select_over)
    cells = []
    for group in _grouped(rows, keys):
        chosen = _best_candidate(group, select_over)
        cell = {key: _value(group[0], key) for key in keys}
        cell |= {key: _value(chosen[0], key) for key in select_over}
        cell |= {"metric": group[0]["metric"], "split": report.split}
        cell |= summarize(_finished(chosen), report.split)
        cell["runs_finished"] = len(_finished(group))
        cell["runs_planned"] = len(group)
        cells.append(cell)
    return cells


def _with_further(rows, report, select_over):
    rows = further_cells.rows_of_cells(rows, report)
    if report.best_of is not None:
        select_over = [*select_over, further_cells.chosen_column(report)]
    return rows, select_over


def chosen_rows(rows, report, select_over=(), further=False):
    """Returns the rows that the table's cells are made of.

    Args:
        rows: List of dicts, from `run_rows`.
        report: `Report`.
        select_over: Keys of which each cell takes its best values.
        further: Whether those of `further_cells` are among them.
    """
    if further:
        rows, select_over = _with_further(rows, report, select_over)
    return [
        row
        for group in _grouped(rows, report_keys.cell_keys(report))
        for row in _best_candidate(group, select_over)
    ]


def _value(row, key):
    """Returns what a table shows; lists are no keys of a dict."""
    value = row.get(key, "")
    return str(value) if isinstance(value, list) else value


def _grouped(rows, keys):
    """Returns the rows as lists of equal `keys`, in order of appearance."""
    groups = collections.defaultdict(list)
    for row in rows:
        groups[json.dumps([row.get(key) for key in keys])].append(row)
    return list(groups.values())


def _finished(rows):
    return [row for row in rows if row["state"] == "finished"]


def _best_candidate(group, select_over):
    """Returns the rows of the values of `select_over` best on validation.

    The metric is that which selects checkpoints, whatever the table shows.
    Only candidates with as many finished seeds as the fullest one compete: a
    mean over fewer seeds could win by luck.
    """
    candidates = _grouped(group, select_over)
    max_finished = max(len(_finished(candidate)) for candidate in candidates)
    if max_finished == 0:
        return candidates[0]
    return max(
        (c for c in candidates if len(_finished(c)) == max_finished),
        key=lambda c: statistics.fmean(r["selection"] for r in _finished(c)),
    )


def summarize(rows, split):
    """Returns statistics over the seeds of one cell as a dict.

    Args:
        rows: List of dicts of finished runs, from `run_rows`.
        split: `"validation"` or `"test"`.

    Returns:
        Dict with `n`, `mean`, `standard_deviation` (of a sample: divided by
        `n - 1`), `median`, `best` (of the run that is best on validation,
        whatever `split` is), and means of what else the runs report. Where
        there is no value, it is `None`.
    """
    scored = [row for row in rows if row[split] is not None]
    values = [row[split] for row in scored]
    summary = {
        "n": len(values),
        "mean": _mean(values),
        "standard_deviation": (
            statistics.stdev(values) if len(values) > 1 else None
        ),
        "median": statistics.median(values) if values else None,
        "best": (
            max(scored, key=lambda row: row["selection"])[split]
            if values
            else None
        ),
    }
    for key in _NUMBERS[:4]:
        # Results of 0.1.0 do not tell the head's weights.
        numbers = [row.get(key) for row in rows]
        summary[key] = _mean([n for n in numbers if n is not None])
    reported = (key for row in rows for key in row)
    for key in dict.fromkeys(reported):
        part, _, name = key.partition("/")
        if part in (*_REPORTED, "transfer") and name:
            summary[name] = _mean([row[key] for row in rows if key in row])
    summary["from_changed_source"] = any(row["changed"] for row in rows)
    return summary


def _mean(values):
    return statistics.fmean(values) if values else None
