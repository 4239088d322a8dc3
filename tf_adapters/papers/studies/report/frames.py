"""Makes the tables of a study's report as data frames of strings."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from tf_adapters.papers.studies.grid import report_keys
from tf_adapters.papers.studies.report import cells as study_cells

_HIDDEN = (
    "split",
    "encoder_weights",
    "head_weights",
    "from_changed_source",
    "runs_planned",
)
_PROVENANCE = ("state", "validation", "test", "seconds", "commit", "device")
_PROVENANCE += ("versions", "folder")


def measured(
    cells: list[dict[str, Any]],
    rows: Any,
    column: Any,
    aggregate: str = "mean",
) -> Any:
    """Returns a study's table as papers print it, with an average in each row.

    Args:
        cells: List of dicts, from `cells.make_cells`.
        rows: List of keys whose values make the rows.
        column: Key whose values make the columns.
        aggregate: See `Report`.

    Returns:
        `DataFrame` of strings.
    """
    frame = pd.DataFrame(cells, dtype=object)
    numbers = [study_cells.value_and_spread(c, aggregate) for c in cells]
    frame = frame.assign(
        **frame[rows].map(str),
        column=frame[column].map(str),
        value=[value for value, _ in numbers],
        shown=[_cell(*both) for both in zip(cells, numbers, strict=True)],
        everything="",  # Needed for an index if there are no `rows`.
    )
    keys = ["everything", *rows]
    by_row, by_column = (frame.groupby(k, sort=False) for k in (keys, "column"))
    found = in_order(frame, "shown", keys)
    found.columns = [
        f"{name} ({', '.join(own.metric.unique())})" for name, own in by_column
    ]
    found.insert(0, "trained", by_row.apply(_trained_share))
    # Columns of languages have averages among them.
    if column != report_keys.LANGUAGES:
        found["average"] = by_row["value"].agg(_average, by_column.ngroups)
    return found.reset_index().drop(columns="everything")


def in_order(frame: pd.DataFrame, values: str, keys: Sequence[str]) -> Any:
    """Returns a pivot table with rows and columns in order of appearance.

    Args:
        frame: `DataFrame` with a column `column`, whose values become columns.
        values: Name of the column with the strings of the cells.
        keys: Names of the columns that make the index.
    """
    found = frame.pivot_table(values, keys, "column", aggfunc="last")
    rows = frame.set_index(keys).index.unique()
    return found.reindex(rows, columns=frame.column.unique()).fillna("-")


def _cell(cell: Any, numbers: Any) -> str:
    value, spread = numbers
    text = "-" if value is None else f"{100 * value:.1f}"
    if spread is not None:
        text += f" ± {100 * spread:.1f}"
    if cell["from_changed_source"]:
        text += "*"
    if cell["runs_finished"] < cell["runs_planned"]:
        text += f" ({cell['runs_finished']} of {cell['runs_planned']} runs)"
    return text


def _trained_share(cells: Any) -> str:
    """Returns the trained weights as a percentage of the encoder's weights.

    The head's weights are left out, as in AdapterBias, table 1.
    """
    counts = cells[["trained_weights", "head_weights", "encoder_weights"]]
    trained, head, encoder = counts.astype(float).fillna(0).T.to_numpy()
    known = (trained > 0) & (encoder > 0)
    if not known.any():
        return "-"
    shares = ((trained - head)[known] / encoder[known]).tolist()
    return f"{100 * sum(shares) / len(shares):.3g} %"


def _average(values: Any, columns: Any) -> str:
    """Returns the mean over all columns, or `-` if a column has no value."""
    if values.count() < columns:
        return "-"
    return f"{100 * sum(values) / columns:.1f}"


def statistics(cells: Any) -> Any:
    """Returns the statistics of a table's cells as a `DataFrame` of strings."""
    frame = pd.DataFrame(cells, dtype=object)
    return frame.drop(columns=[*_HIDDEN]).map(_number)


def _number(value: Any) -> str:
    if pd.isna(value):
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def states(rows: list[dict[str, Any]]) -> Any:
    """Returns a `DataFrame` of strings with one row for each run and task.

    A row has the run's state, metrics and provenance.

    Args:
        rows: List of dicts, from `run_rows.run_rows`.
    """
    frame = pd.DataFrame(rows, dtype=object)
    frame = frame.reindex(columns=["run", *_PROVENANCE, "error"])
    failed = frame.error.fillna("") != ""
    frame.loc[failed, "state"] += ": " + frame.error[failed]
    frame.folder = frame.folder.fillna(frame.run)
    return frame.drop(columns="error").map(_state)


def _state(value: Any) -> str:
    if pd.isna(value) or value == "":
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
