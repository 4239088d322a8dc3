"""The paper's printed numbers beside those that were measured."""

import collections
import dataclasses
import statistics

from tf_adapters.papers.studies.grid import further_cells
from tf_adapters.papers.studies.grid import paper
from tf_adapters.papers.studies.grid import report_keys
from tf_adapters.papers.studies.grid import settings as study_settings


@dataclasses.dataclass(frozen=True)
class Beside:
    """A number of the paper's table and ours, both in the paper's units.

    Attributes:
        row: What the row is of, in words.
        column: Name of the column.
        printed: Number or `None`.
        error: Its printed spread or `None`.
        measured: Mean over runs, or `None` where none has finished.
        deviation: Their sample standard deviation; `None` for one run.
        runs: How many have finished.
    """

    row: str
    column: str
    printed: float | None
    error: float | None
    measured: float | None
    deviation: float | None
    runs: int


def beside(study, runs, rows):
    """Returns a `Beside` for each number of `expected`, row by row.

    Args:
        study: `Study`.
        runs: List of `Run`.
        rows: List of dicts, from `report.chosen_rows`, further ones too.
    """
    if study.expected is None:
        return []
    settings = {run.id: run.settings for run in runs}
    keys = ("task", *report_keys.cell_keys(study.report))
    cells = [
        # A cell may be of other values than its run: see `further_cells`.
        (row, settings[row["run"]] | {k: row[k] for k in keys if k in row})
        for row in rows
        if row["state"] == "finished" and row[study.report.split] is not None
    ]
    return [
        one for row in study.expected.rows for one in _row(study, row, cells)
    ]


def _row(study, expected, cells):
    label = study_settings.in_words(expected.runs)
    columns = [str(column) for column in study.expected.columns]
    errors = expected.errors or [None] * len(columns)
    values = _by_column(study.report, expected.runs, cells)
    for column, number, error in zip(
        columns, expected.values, errors, strict=True
    ):
        measured = _summary(values[column])
        if column == paper.AVERAGE:
            others = [values[c] for c in columns if c != column]
            measured = _average(others)
        yield Beside(label, column, number, error, *measured)


def _by_column(report, wanted, cells):
    """Returns the numbers of a row's runs by column, in points."""
    values = collections.defaultdict(list)
    for row, known in cells:
        is_best = row.get(report.best_of) == further_cells.BEST
        if is_best and report.best_of not in wanted:
            continue
        if study_settings.matches(wanted, known):
            column = str(known.get(report.columns))
            values[column].append(100 * row[report.split])
    return values


def _summary(values):
    if not values:
        return None, None, 0
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return statistics.fmean(values), deviation, len(values)


def _average(columns):
    """Returns the mean of the columns' means, where there are all."""
    runs = min(map(len, columns), default=0)
    if runs == 0:
        return None, None, 0
    return statistics.fmean(map(statistics.fmean, columns)), None, runs


def table(found):
    """Returns header and rows of a table, two rows for each of the paper's.

    Args:
        found: List of `Beside`.
    """
    columns = list(dict.fromkeys(one.column for one in found))
    body = []
    for label in dict.fromkeys(one.row for one in found):
        own = {one.column: one for one in found if one.row == label}
        for first, name, text in (
            (label, "printed", _printed),
            ("", "measured", _measured),
        ):
            cells = [text(own[c]) if c in own else "-" for c in columns]
            body.append([first, name, *cells])
    return ["", "", *columns], body


def _printed(one):
    return _cell(one.printed, one.error)


def _measured(one):
    text = _cell(one.measured, one.deviation)
    return f"{text} ({one.runs})" if one.runs else text


def _cell(value, spread):
    if value is None:
        return "-"
    return f"{value:.1f}" if spread is None else f"{value:.1f} ± {spread:.1f}"
