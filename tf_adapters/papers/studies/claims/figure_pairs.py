"""The pairs of rows of a figure's table that a claim compares."""

import csv

import numpy as np


def figure_differences(claim, paths, keys):
    """Returns the differences between rows of a figure's tables.

    Rows are compared that have equal values of the other columns that both
    sides share values of, but for measured numbers; several such rows of one
    side are averaged. What one pair of runs has more than one difference of,
    its blocks for example, is averaged too: these are not independent.

    Args:
        claim: `paper.Claim` of a figure.
        paths: List of paths of its tables, CSV files, taken as one.
        keys: Names of settings, which are no measured numbers.

    Returns:
        List of a difference for each pair of runs, or a text: why there are
        none.
    """
    table = [row for path in paths for row in _read(path)]
    asked = {**claim.higher, **claim.than, **(claim.where or {})}
    for column in (claim.value, *asked):
        if not any(column in row for row in table):
            columns = dict.fromkeys(key for row in table for key in row)
            return (
                f"the figure `{claim.of}` has no column `{column}`, but "
                f"{', '.join(columns)}"
            )
    sides = [
        [row for row in table if _has({**(claim.where or {}), **wanted}, row)]
        for wanted in (claim.higher, claim.than)
    ]
    compared = {claim.value, *claim.higher, *claim.than}
    columns = _pair_columns(sides, compared, keys)
    high, low = (_means(side, columns, claim.value) for side in sides)
    differences = {row: high[row] - low[row] for row in high if row in low}
    # A table without runs has rows of several, its boxes for example.
    names = keys if any({"run", "seed"} & row.keys() for row in table) else ()
    of_runs = [place for place, column in enumerate(columns) if column in names]
    return _by_runs(differences, of_runs) or (
        f"the figure `{claim.of}` has no pair of rows"
    )


def _by_runs(differences, places):
    """Returns the mean difference of each pair of runs.

    Args:
        differences: Dict from tuples, what two rows share, to numbers.
        places: Where in the tuples what two runs share stands; where nothing
            does, each difference counts.
    """
    groups = {}
    for row, difference in differences.items():
        runs = tuple(row[place] for place in places) or row
        groups.setdefault(runs, []).append(difference)
    return [float(np.mean(values)) for values in groups.values()]


def _read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _has(wanted, row):
    return all(
        any(
            _same(row.get(key, ""), one)
            for one in (value if isinstance(value, list) else [value])
        )
        for key, value in wanted.items()
    )


def _same(text, value):
    return text == str(value) or (
        _number(text) is not None and _number(text) == _number(str(value))
    )


def _number(text):
    try:
        return float(text)
    except ValueError:
        return None


def _pair_columns(sides, compared, keys):
    """Returns the columns in which both rows of a pair are to agree."""
    columns = dict.fromkeys(
        column for side in sides for row in side for column in row
    )
    return [
        column
        for column in columns
        if column not in compared
        and (column in keys or not _is_measured(column, sides))
        and set.intersection(
            *({row.get(column, "") for row in side} for side in sides)
        )
    ]


def _is_measured(column, sides):
    """Whether a column holds numbers with decimals, as no key of a table."""
    values = [row.get(column, "") for side in sides for row in side]
    numbers = [_number(value) for value in values if value]
    return all(n is not None for n in numbers) and any(
        not n.is_integer() for n in numbers
    )


def _means(side, keys, value):
    groups = {}
    for row in side:
        number = _number(row[value])
        if number is not None and not np.isnan(number):
            key = tuple(row.get(k, "") for k in keys)
            groups.setdefault(key, []).append(number)
    return {key: float(np.mean(values)) for key, values in groups.items()}
