"""Computes the cells of a study's table from the rows of its runs.

A cell of the table belongs to a combination of values of the row keys and the
column key. If the study selects over hyper-parameters, a cell shows the
candidate with the best validation metric, averaged over seeds. Test metrics do
not affect the selection.
"""

import collections
from collections.abc import Sequence
import dataclasses
import json
import math
import statistics
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.papers.studies.grid import report_keys
from tf_adapters.papers.studies.report import run_rows

if TYPE_CHECKING:
    from tf_adapters.launch.planned_run import Run
    from tf_adapters.papers.studies.grid.declaration import Study


_TRANSFER = "transfer/"


@dataclasses.dataclass(frozen=True)
class Tables:
    """The numbers of a study's report.

    Attributes:
        cells: List of dicts with statistics over seeds, one for each cell.
        runs: List of dicts, one for each run and task.
        complete: Whether all runs are finished.
    """

    cells: list
    runs: list
    complete: bool


def make_tables(
    study: "Study",
    runs: "Sequence[Run]",
    results: dict[str, Any],
    errors: dict[str, Any],
    folders: dict[str, Any] | None = None,
) -> "Tables":
    """Returns the `Tables` of a study.

    Args:
        study: `Study`.
        runs: List of `Run`.
        results: Dict from run id to `result.json`, or `None` if unfinished.
        errors: Dict from run id to the reason why the run failed, or "".
        folders: Dict from run id to the run's folder, relative to the study's
            folder. Defaults to subfolders with the names of the runs.
    """
    folders = folders or {run.id: run.id for run in runs}
    rows = [
        {**row, "folder": folders[run.id]}
        for run in runs
        for row in run_rows.run_rows(run, results[run.id], errors[run.id])
    ]
    cells = make_cells(rows, study.report, study.select_over)
    return Tables(cells, rows, len(_finished(rows)) == len(rows))


def make_cells(
    rows: list[dict[str, Any]], report: Any, select_over: Sequence[Any] = ()
) -> list[Any]:
    """Returns the cells of a study's table, each a dict.

    Args:
        rows: List of dicts, from `run_rows`.
        report: `Report`.
        select_over: Keys whose best values each cell uses.
    """
    keys = report_keys.cell_keys(report)
    rows, select_over = _with_further(rows, report, select_over)
    cells = []
    for group in _grouped(rows, keys):
        chosen = _best_candidate(group, select_over)
        cell = {key: _value(group[0], key) for key in keys}
        cell |= {key: _value(chosen[0], key) for key in select_over}
        cell |= {"metric": group[0]["metric"], "split": report.split}
        cell |= statistics_of_cell(_finished(chosen), report.split)
        cell["runs_finished"] = len(_finished(group))
        cell["runs_planned"] = len(group)
        cells.append(cell)
    return cells


def chosen_rows(
    rows: list[dict[str, Any]],
    report: Any,
    select_over: Sequence[Any] = (),
    further: bool = False,
) -> list[Any]:
    """Returns the rows that the table's cells summarize.

    Args:
        rows: List of dicts, from `run_rows`.
        report: `Report`.
        select_over: Keys whose best values each cell uses.
        further: Whether to include rows of additional cells, such as `best`.
    """
    if further:
        rows, select_over = _with_further(rows, report, select_over)
    return [
        row
        for group in _grouped(rows, report_keys.cell_keys(report))
        for row in _best_candidate(group, select_over)
    ]


def _with_further(rows: Any, report: Any, select_over: Any) -> tuple[Any, ...]:
    """Adds rows for cells such as `best`, and for each language.

    Returns all rows, and the names of the settings to select over.
    """
    if report.columns == report_keys.LANGUAGES:
        names = _languages(rows)
        rows = [own for row in rows for own in _by_language(row, report, names)]
    else:
        rows = [*rows, *_of_mismatched(rows, report)]
    if report.best_of is None:
        return rows, select_over
    key, chosen = report.best_of, f"chosen {report.best_of}"
    if report.columns != report_keys.LANGUAGES:
        rows += [
            {**row, key: report_keys.BEST, chosen: row[key]}
            for row in rows
            if row.get(key) is not None
        ]
    return rows, [*select_over, chosen]


def _languages(rows: Any) -> dict[str, list[str]]:
    """Returns a dict from task to the languages and averages of its runs."""
    found = collections.defaultdict(dict)
    for row in rows:
        for key in row:
            if key.startswith(_TRANSFER):
                found[row["task"]][key.removeprefix(_TRANSFER)] = None
    return {task: list(names) for task, names in found.items()}


def _by_language(row: Any, report: Any, names: Any) -> list[Any]:
    """Copies a run's row once per language, with the metric in that language.

    An unfinished run gets the same languages, so that each cell says how many
    of its runs are missing. If no run of the task is finished, returns one row
    without a language. `names` is the result of `_languages`.
    """
    is_finished = row["state"] == "finished"
    return [
        {
            **row,
            report_keys.LANGUAGES: name,
            report.split: row.get(f"{_TRANSFER}{name}"),
        }
        for name in names.get(row["task"], [])
        if not is_finished or f"{_TRANSFER}{name}" in row
    ] or [{**row, report_keys.LANGUAGES: ""}]


def _of_mismatched(rows: Any, report: Any) -> list[Any]:
    """Returns rows for the column `mnli_mismatched` of a table.

    They are copies of the rows of MNLI runs that have a metric on this split,
    and of unfinished ones if any run has such a metric.
    """
    other = "validation_mismatched"
    if report.columns != "task" or report.split == other:
        return []
    rows = [row for row in rows if row["task"] == "mnli"]
    if all(row.get(other) is None for row in rows):
        return []
    return [
        {**row, "task": report_keys.MISMATCHED, report.split: row.get(other)}
        for row in rows
        if row["state"] != "finished" or row.get(other) is not None
    ]


def _value(row: Any, key: Any) -> Any:
    """Returns the value of a key in a row, as a string if it is a list."""
    value = row.get(key, "")
    return str(value) if isinstance(value, list) else value


def _grouped(rows: Any, keys: Any) -> list[Any]:
    """Returns a list of groups.

    A group is a list of the rows with equal values of `keys`.
    """
    groups = collections.defaultdict(list)
    for row in rows:
        groups[json.dumps([row.get(key) for key in keys])].append(row)
    return list(groups.values())


def _finished(rows: Any) -> list[Any]:
    return [row for row in rows if row["state"] == "finished"]


def _best_candidate(group: Any, select_over: Any) -> Any:
    """Selects hyper-parameters for one cell by the mean validation metric.

    `group` has the cell's rows. Returns those with the best values of the
    settings `select_over`. The metric is the one that selects checkpoints. Only
    candidates with the largest number of finished seeds compete, because a mean
    over fewer seeds could win by luck.
    """
    candidates = _grouped(group, select_over)
    max_finished = max(len(_finished(candidate)) for candidate in candidates)
    if max_finished == 0:
        return candidates[0]
    return max(
        (c for c in candidates if len(_finished(c)) == max_finished),
        key=lambda c: statistics.fmean(r["selection"] for r in _finished(c)),
    )


def statistics_of_cell(
    rows: list[dict[str, Any]], split: Any
) -> dict[str, Any]:
    """Returns a dict of statistics over the seeds of one cell.

    Args:
        rows: List of dicts of finished runs, from `run_rows`.
        split: See `Report`.

    Returns:
        Dict with `n`, `mean`, `standard_deviation` (with divisor `n - 1`),
        `median`, `best` (the value on `split` of the run that is best on
        validation), and means of the other reported numbers. Missing values
        are `None`.
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
    for key in run_rows.WEIGHTS_AND_SECONDS:
        # Results of version 0.1.0 lack the head's weights.
        numbers = [row.get(key) for row in rows]
        summary[key] = _mean([n for n in numbers if n is not None])
    for key in dict.fromkeys(key for row in rows for key in row):
        part, _, name = key.partition("/")
        if part in (*run_rows.REPORTED, "transfer") and name:
            summary[name] = _mean([row[key] for row in rows if key in row])
    summary["from_changed_source"] = any(row["changed"] for row in rows)
    return summary


def value_and_spread(
    summary: dict[str, Any], aggregate: Any
) -> tuple[Any, ...]:
    """Returns the value and the spread in a cell, each `None` if unknown.

    Args:
        summary: Dict from `statistics_of_cell`.
        aggregate: See `Report`.
    """
    if aggregate == "best":
        return summary["best"], None
    spread = summary["standard_deviation"]
    if aggregate == "standard_error" and spread is not None:
        spread /= math.sqrt(summary["n"])
    return summary["mean"], spread


def _mean(values: Any) -> Any:
    return statistics.fmean(values) if values else None
