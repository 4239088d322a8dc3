"""Cells of a study's table that are of no single value of the grid."""

# The value of `report.best_of` in its further row.
BEST = "best"
# MNLI's mismatched half: a column beside `mnli` in the papers' tables.
MISMATCHED = "mnli_mismatched"
# As `report.columns`: a column for each language, and for averages over them.
LANGUAGES = "data.eval_languages"
_TRANSFER = "transfer/"


def rows_of_cells(rows, report):
    """Returns the rows that a table's cells are made of.

    Args:
        rows: List of dicts, from `report.run_rows`.
        report: `Report`.

    Returns:
        The rows and `further_rows`; or, where the columns are languages, a row
        for each run and language, its value in place of the run's. A run that
        is not finished has one row, of no language.
    """
    if report.columns != LANGUAGES:
        return [*rows, *further_rows(rows, report)]
    found = []
    for row in rows:
        values = {k: v for k, v in row.items() if k.startswith(_TRANSFER)}
        own = [
            {**row, LANGUAGES: k.removeprefix(_TRANSFER), report.split: value}
            for k, value in values.items()
        ]
        found += own or [{**row, LANGUAGES: ""}]
    return found


def further_rows(rows, report):
    """Returns rows of runs once more, for the further cells of a table.

    Args:
        rows: List of dicts, from `report.run_rows`.
        report: `Report`.

    Returns:
        Rows with the task `mnli_mismatched`, of the runs whose results have it;
        and those with `report.best_of`, now `best`. What that was is in the
        column `chosen_column` names.
    """
    rows = [*rows, *(mismatched := _of_mismatched(rows, report))]
    key = report.best_of
    best = [
        {**row, key: BEST, chosen_column(report): row[key]}
        for row in rows
        if key is not None and row.get(key) is not None
    ]
    return [*mismatched, *best]


def chosen_column(report):
    """Returns the name of the column with the value that is best."""
    return f"chosen {report.best_of}"


def _of_mismatched(rows, report):
    other = "validation_mismatched"
    if report.columns != "task" or report.split == other:
        return []
    return [
        {**row, "task": MISMATCHED, report.split: row[other]}
        for row in rows
        if row["task"] == "mnli" and row.get(other) is not None
    ]
