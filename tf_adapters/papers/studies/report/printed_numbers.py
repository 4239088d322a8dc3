"""Compares the numbers that a paper prints with measured numbers."""

import collections
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import statistics
from typing import TYPE_CHECKING
from typing import Any

import pandas as pd

from tf_adapters.papers.studies.grid import paper
from tf_adapters.papers.studies.grid import report_keys
from tf_adapters.papers.studies.grid import settings as study_settings
from tf_adapters.papers.studies.report import cells as study_cells
from tf_adapters.papers.studies.report import frames

if TYPE_CHECKING:
    from tf_adapters.launch.planned_run import Run
    from tf_adapters.papers.studies.grid.declaration import Study


@dataclasses.dataclass(frozen=True)
class PrintedNumber:
    """A number that a paper prints, and our runs' number in the same units.

    Attributes:
        row: Label of the row.
        column: Name of the column.
        printed: Number in the paper, or `None`.
        error: Printed spread of the number, or `None`.
        measured: Value of the runs, see `Report.aggregate`, or `None` if no run
            has finished.
        deviation: Spread over runs, or `None` for one run.
        runs: Number of finished runs.
    """

    row: str
    column: str
    printed: float | None
    error: float | None
    measured: float | None
    deviation: float | None
    runs: int


def find_printed_numbers(
    study: "Study", runs: "Sequence[Run]", rows: list[dict[str, Any]]
) -> list[Any]:
    """Returns a `PrintedNumber` for each number in `study.expected`.

    Args:
        study: `Study`.
        runs: List of `Run`.
        rows: List of dicts, from `cells.chosen_rows` with `further=True`.
    """
    if study.expected is None:
        return []
    settings = {run.id: run.settings for run in runs}
    keys = ("task", *report_keys.cell_keys(study.report))
    known = [
        # A cell's values can differ from its run's, see `report_keys.BEST`.
        (row, settings[row["run"]] | {k: row[k] for k in keys if k in row})
        for row in rows
        if row["state"] == "finished" and row[study.report.split] is not None
    ]
    return [
        one for row in study.expected.rows for one in _row(study, row, known)
    ]


def _row(study: Any, expected: Any, known: Any) -> Iterator[Any]:
    label = study_settings.label_of(expected.runs)
    columns = [str(column) for column in study.expected.columns]
    errors = expected.errors or [None] * len(columns)
    values = _by_column(study.report, expected.runs, known)
    for column, number, error in zip(
        columns, expected.values, errors, strict=True
    ):
        measured = _summary(study.report, values[column])
        if column == paper.AVERAGE:
            others = [
                _summary(study.report, values[c])
                for c in columns
                if c != column
            ]
            measured = _average(others)
        yield PrintedNumber(label, column, number, error, *measured)


def _by_column(report: Any, wanted: Any, known: Any) -> dict[Any, Any]:
    """Returns the rows of runs that belong to one row of a paper's table.

    The result is a dict from column name to rows. `wanted` are the settings of
    the paper's row, and `known` are pairs of a run's row and its settings.
    """
    values = collections.defaultdict(list)
    for row, settings in known:
        is_best = row.get(report.best_of) == report_keys.BEST
        if is_best and report.best_of not in wanted:
            continue
        if study_settings.matches(wanted, settings):
            column = str(settings.get(report.columns))
            values[column].append(row)
    return values


def _summary(report: Any, rows: Any) -> tuple[Any, Any, Any]:
    """Returns a cell's value and spread, both times 100, and number of runs."""
    summary = study_cells.statistics_of_cell(rows, report.split)
    numbers = study_cells.value_and_spread(summary, report.aggregate)
    value, spread = (None if n is None else 100 * n for n in numbers)
    return value, spread, summary["n"]


def _average(columns: Any) -> tuple[Any, ...]:
    """Averages a row of the table over its columns.

    A column is a tuple of a value, a spread and a number of runs. The result is
    such a tuple, with the mean value, no spread, and the smallest number of
    runs. If a column has no runs, there is no mean value.
    """
    runs = min((runs for _, _, runs in columns), default=0)
    if runs == 0:
        return None, None, 0
    return statistics.fmean(value for value, _, _ in columns), None, runs


def as_frame(found: Sequence[Any]) -> Any:
    """Returns a `DataFrame` of strings with printed and measured numbers.

    It has two rows, printed and measured, for each row of the paper's table.

    Args:
        found: List of `PrintedNumber`.
    """
    frame = pd.DataFrame(
        {
            "row": [one.row for one in found],
            "column": [one.column for one in found],
            "printed": [_cell(one.printed, one.error) for one in found],
            "measured": [_measured(one) for one in found],
        }
    )
    lines = frame.set_index(["row", "column"]).rename_axis(columns="kind")
    lines = lines.stack().reset_index(name="text")
    table = frames.in_order(lines, "text", ["row", "kind"]).reset_index()
    table["row"] = table.row.mask(table.row.duplicated(), "")
    return table.rename(columns={"row": "", "kind": ""})


def _measured(one: Any) -> str:
    text = _cell(one.measured, one.deviation)
    return f"{text} ({one.runs})" if one.runs else text


def _cell(value: Any, spread: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if spread is None else f"{value:.1f} ± {spread:.1f}"
