"""The content of a report, before it is written as HTML, CSV or text."""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import itertools
import typing
from typing import Any


@dataclasses.dataclass(frozen=True)
class ReportTable:
    """A titled table.

    Attributes:
        title: Title of the table.
        header: Names of the columns.
        rows: List of rows, which are lists of strings, numbers and `None`.
        note: A sentence to show below the table, or "" (default).
        on_screen: Whether `run_report.describe` includes the table. Default:
            `True`.
    """

    title: str
    header: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    note: str = ""
    on_screen: bool = True


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture that is drawn only if Matplotlib is installed.

    Attributes:
        name: Name of its file, without `.png`.
        caption: Caption of the picture.
        draw: Function without arguments that returns a Matplotlib figure.
    """

    name: str
    caption: str
    draw: Callable[[], typing.Any]


@dataclasses.dataclass(frozen=True)
class ReportContent:
    """Everything that a report shows about a run's predictions.

    Attributes:
        tables: List of `ReportTable`.
        pictures: List of `Picture`.
        errors: `ReportTable` with a row for each mistake, worst first, or
            `None` if the report has no such table.
        notes: List of sentences to show at the top of the report.
    """

    tables: list[ReportTable] = dataclasses.field(default_factory=list)
    pictures: list[Picture] = dataclasses.field(default_factory=list)
    errors: ReportTable | None = None
    notes: list[str] = dataclasses.field(default_factory=list)


def cell_text(value: Any) -> str:
    """Formats the value of a table cell as text.

    Floats have four decimals, integers have commas, and `None` is "-".
    """
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def is_number(value: Any) -> bool:
    """Returns whether a cell's value is a number or `None`.

    Such cells are right-aligned.
    """
    return isinstance(value, int | float) or value is None


def as_text(table: ReportTable) -> str:
    """Returns a table as aligned plain text, without its title and note."""
    lines = [
        [*table.header],
        *([cell_text(v) for v in row] for row in table.rows),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    numeric = [
        all(map(is_number, column)) for column in zip(*table.rows, strict=True)
    ] or itertools.repeat(False)
    aligned = [
        "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    ]
    return "\n".join(aligned)
