"""The tables of the analyses as files."""

import csv
from pathlib import Path


def write_csv(path, columns, rows):
    """Writes a CSV file with a header line; six digits of each float.

    Args:
        path: File to write; its folder is created.
        columns: Names of the columns.
        rows: Sequences of text and numbers.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_text(value) for value in row] for row in rows)


def _text(value):
    return f"{value:.6g}" if isinstance(value, float) else value
