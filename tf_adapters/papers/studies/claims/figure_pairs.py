"""The pairs of rows of a figure's table that a claim compares."""

import numpy as np
import pandas as pd


def figure_differences(claim, paths, keys):
    """Returns the differences between rows of a figure's tables.

    Two rows are compared if they have equal values in all other columns of
    which both sides share values, measured numbers left out. Several such rows
    of one side are averaged. If a pair of runs has several differences, one
    for each block for example, they are averaged too: they are not
    independent.

    Args:
        claim: `paper.Claim` of a figure.
        paths: List of paths of its tables, CSV files, taken as one.
        keys: Names of settings, which are never measured numbers.

    Returns:
        List of a difference for each pair of runs, or a text: why there are
        none.
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
    # A table without runs has rows of several, its boxes for example.
    names = keys if {"run", "seed"} & set(table.columns) else ()
    of_runs = [place for place, column in enumerate(columns) if column in names]
    return _by_runs(differences, of_runs) or (
        f"the figure `{claim.of}` has no pair of rows"
    )


def _by_runs(differences, places):
    """Returns the mean difference of each pair of runs.

    Args:
        differences: Dict from tuples, the values that two rows share, to
            numbers.
        places: Places in the tuples of the values that two runs share. If
            there are none, each difference counts.
    """
    groups = {}
    for row, difference in differences.items():
        runs = tuple(row[place] for place in places) or row
        groups.setdefault(runs, []).append(difference)
    return [float(np.mean(values)) for values in groups.values()]


def _has(wanted, table):
    """Returns for each row whether it has the wanted values."""
    found = np.ones(len(table), bool)
    for key, values in wanted.items():
        values = list(
            map(str, values if isinstance(values, list) else [values])
        )
        numbers = [n for n in map(_number, values) if n is not None]
        column = table[key]
        found &= column.isin(values) | column.map(_number).isin(numbers)
    return found


def _number(text):
    try:
        return float(text)
    except ValueError:
        return None


def _pair_columns(sides, compared, keys):
    """Returns the columns in which both rows of a pair must agree."""
    first, second = sides
    both = pd.concat(sides)
    return [
        column
        for column in both
        if column not in compared
        and (column in keys or not _is_measured(both[column]))
        and set(first[column]) & set(second[column])
    ]


def _is_measured(column):
    """Whether a column holds numbers with decimals, which no key has."""
    numbers = [_number(value) for value in column if value]
    return None not in numbers and any(not n.is_integer() for n in numbers)


def _means(side, keys, value):
    """Returns a dict from values of the keys to the mean of their rows."""
    groups = {}
    rows = map(tuple, side[keys].to_numpy().tolist())
    for row, number in zip(rows, side[value].map(_number), strict=True):
        if pd.notna(number):
            groups.setdefault(row, []).append(number)
    return {row: float(np.mean(numbers)) for row, numbers in groups.items()}
