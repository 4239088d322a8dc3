"""Makes tables of wrong predictions and of the texts they are for."""

from __future__ import annotations

from collections.abc import Sequence
import csv
import io
import numbers
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import own_files
from tf_adapters.report.content import ReportTable

if TYPE_CHECKING:
    from pathlib import Path

    from tf_adapters.report.run_files import RunFiles


NAME = "errors"
# Characters that start a formula in a spreadsheet, and characters that a
# spreadsheet may strip before it looks for a formula.
_FORMULA, _STRIPPED = ("=", "+", "-", "@"), "\t\r\n "


def table_of_mistakes(
    run: RunFiles, mistakes: Sequence[Any], columns: Sequence[str]
) -> ReportTable:
    """Returns a `ReportTable` of wrong predictions, in the given order.

    The texts of each row of the data are added, if they were found.

    Args:
        run: `RunFiles`.
        mistakes: List with a list for each mistake. The first entry is the
            index of the row in the data, the others belong to `columns`.
        columns: Names of the columns after the index and the texts.
    """
    texts = text_columns(run)
    rows = [[m[0], *texts_of(run, m[0]), *m[1:]] for m in mistakes]
    header = ("row", *texts, *columns)
    return ReportTable("Mistakes", header, rows, "Rows are counted from 0.")


def text_columns(run: RunFiles) -> tuple[Any, ...]:
    """Returns the names of the text columns in a table of mistakes.

    Returns `()` if the run's data were not found.
    """
    if run.rows is None:
        return ()
    return run.fields if len(run.fields) > 1 else ("text",)


def texts_of(run: RunFiles, row: int) -> list[Any]:
    """Returns a list of the texts of the row with the index `row`.

    If a text is a list of words, they are joined by spaces. The returned list
    is empty if the run's data were not found.
    """
    if run.rows is None:
        return []
    return [_plain(run.rows[row][field]) for field in run.fields]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else " ".join(map(str, value))


def write_mistakes(table: ReportTable, path: Path) -> None:
    """Writes a table as CSV. Spreadsheets do not read its texts as formulas."""
    content = io.StringIO(newline="")
    writer = csv.writer(content)
    writer.writerow(table.header)
    writer.writerows([_harmless(v) for v in row] for row in table.rows)
    own_files.replace_file(path, content.getvalue().encode())


def _harmless(value: Any) -> Any:
    """Returns the value to write to a CSV file for a table cell.

    A text that a spreadsheet would read as a formula gets a leading `'`.
    """
    if value is None:
        return ""
    if isinstance(value, numbers.Real):
        return round(value, 6)
    starts = value.lstrip(_STRIPPED).startswith(_FORMULA)
    return f"'{value}" if starts or value[:1] in ("\t", "\r") else value
