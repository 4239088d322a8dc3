"""Finds the pairs of rows that a claim compares in a figure's table."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import pandas as pd

from tf_adapters.papers.studies.claims.statistics import Difference

if TYPE_CHECKING:
    from tf_adapters.papers.studies.grid.claim import Claim

# Columns that count what a row was measured on. They are integers, as settings
# often are, but rows that differ in them are compared all the same.
_COUNTS = ("runs", "seeds", "tasks", "tokens", "count")


def figure_differences(
    claim: Claim, paths: Sequence[Any], keys: Collection[str]
) -> Any:
    """Returns the differences that decide whether a figure's claim holds.

    A claim compares two sides, for example two methods. A row of one side and a
    row of the other form a pair if they agree in all matching columns. These
    are the columns that the claim does not compare, except columns with
    measured numbers, columns that count runs or the like, and columns in which
    the two sides have no value in common.
    Rows of the same side that agree in all matching columns are averaged first.
    If a pair of runs has several differences, for example one for each block,
    they are averaged too, because they are not independent.

    Args:
        claim: `Claim` of a figure.
        paths: List of paths of the figure's tables, CSV files to concatenate.
        keys: Names of settings. Their columns never count as measured numbers.

    Returns:
        List with a `Difference` for each pair of runs, or a text with the
        reason why there are none. Pairs that differ only in the seed have the
        same `Difference.setting`.
    """
    tables = [pd.read_csv(p, dtype=str, keep_default_na=False) for p in paths]
    table = pd.concat(tables).fillna("")
    where = claim.where or {}
    for column in (claim.value, *claim.higher, *claim.than, *where):
        if column not in table:
            return (
                f"the figure `{claim.of}` has no column `{column}`, but "
                f"{', '.join(table.columns)}"
            )
    sides = [
        table[_has({**where, **wanted}, table)]
        for wanted in (claim.higher, claim.than)
    ]
    compared = {claim.value, *claim.higher, *claim.than}
    columns = _pair_columns(sides, compared, keys)
    high, low = (_means(side, columns, claim.value) for side in sides)
    differences = {row: high[row] - low[row] for row in high if row in low}
    # In a table without runs, such as a box plot's, a row summarizes runs.
    names = keys if {"run", "seed"} & set(table.columns) else ()
    return _by_runs(differences, columns, names) or (
        f"the figure `{claim.of}` has no pair of rows"
    )


def _by_runs(
    differences: dict[str, Any], columns: Sequence[str], names: Collection[str]
) -> list[Any]:
    """Averages the differences of each pair of runs into one `Difference`.

    Args:
        differences: Dict from a tuple, the values that two rows share, to the
            difference between the rows.
        columns: Names of the values in these tuples.
        names: Columns that identify a run. If `columns` has none of them, the
            differences are not averaged.
    """
    of_runs = [place for place, column in enumerate(columns) if column in names]
    groups = {}
    for row, difference in differences.items():
        run = tuple(row[place] for place in of_runs) or row
        groups.setdefault(run, []).append(difference)
    found = [columns[place] for place in of_runs]
    return [
        Difference(float(np.mean(values)), _without_seed(run, found))
        for run, values in groups.items()
    ]


def _without_seed(run: Any, names: Any) -> tuple[Any, ...]:
    """Drops the seed from `run`, a tuple of values whose names are `names`.

    If `names` is empty, the result is an empty tuple for every run.
    """
    return tuple(
        value for name, value in zip(names, run, strict=False) if name != "seed"
    )


def _has(wanted: Any, table: Any) -> np.ndarray:
    """Returns a boolean array: whether each row has the wanted column values.

    A number matches in any notation, such as "0.1" and "1e-1".
    """
    found = np.ones(len(table), bool)
    for key, values in wanted.items():
        values = list(
            map(str, values if isinstance(values, list) else [values])
        )
        numbers = [n for n in map(_number, values) if n is not None]
        column = table[key]
        found &= column.isin(values) | column.map(_number).isin(numbers)
    return found


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _pair_columns(
    sides: Any, compared: Collection[str], keys: Collection[str]
) -> list[Any]:
    """Returns the columns in which both rows of a pair must be equal."""
    first, second = sides
    both = pd.concat(sides)
    return [
        column
        for column in both
        if column not in compared
        and column not in _COUNTS
        and (column in keys or not _is_measured(both[column]))
        and set(first[column]) & set(second[column])
    ]


def _is_measured(column: Any) -> bool:
    """Returns whether a column has only numbers, and not only integers.

    Columns of settings, such as seeds, mostly have integers or words.
    """
    cells = [value for value in column if value]
    numbers = [n for n in map(_number, cells) if n is not None]
    return len(numbers) == len(cells) and any(
        not n.is_integer() for n in numbers
    )


def _means(side: Any, keys: Any, value: Any) -> dict[Any, Any]:
    """Averages the column `value` over the rows that agree in `keys`.

    Returns a dict from the values in the columns `keys` to the mean.
    """
    groups = {}
    rows = map(tuple, side[keys].to_numpy().tolist())
    for row, number in zip(rows, side[value].map(_number), strict=True):
        if pd.notna(number):
            groups.setdefault(row, []).append(number)
    return {row: float(np.mean(numbers)) for row, numbers in groups.items()}
