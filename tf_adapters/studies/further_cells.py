"""Cells of a study's table that are of no single value of the grid."""

# The value of `report.best_of` in its further row.
BEST = "best"
# MNLI's mismatched half: a column beside `mnli` in the papers' tables.
MISMATCHED = "mnli_mismatched"


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
