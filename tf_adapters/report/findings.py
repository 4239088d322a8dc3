"""What a report shows, before it becomes HTML, CSV or text."""

from collections.abc import Callable
import dataclasses
import itertools
import typing


@dataclasses.dataclass(frozen=True)
class Table:
    """A titled table.

    Attributes:
        title: What it shows.
        header: Names of the columns.
        rows: Lists of texts and numbers.
        note: A sentence for those who read it, or "".
        on_screen: Whether `describe` prints it too.
    """

    title: str
    header: tuple[str, ...]
    rows: list[list]
    note: str = ""
    on_screen: bool = True


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture that is drawn only if a plotting library is there.

    Attributes:
        name: Name of its file, without `.png`.
        caption: What it shows.
        draw: Function that returns a figure of Matplotlib's.
    """

    name: str
    caption: str
    draw: Callable[[], typing.Any]


@dataclasses.dataclass(frozen=True)
class Findings:
    """Everything that a report shows of a run's predictions.

    Attributes:
        tables: List of `Table`.
        pictures: List of `Picture`.
        errors: `Table` with a row for each mistake, the worst first, or `None`
            without predictions.
        notes: Sentences that come before everything else.
    """

    tables: list[Table] = dataclasses.field(default_factory=list)
    pictures: list[Picture] = dataclasses.field(default_factory=list)
    errors: Table | None = None
    notes: list[str] = dataclasses.field(default_factory=list)


def shown(value):
    """Returns a cell's text: numbers with four decimals or with commas."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def is_number(value):
    """Whether a cell is aligned to the right."""
    return isinstance(value, int | float) or value is None


def as_text(table):
    """Returns a table for the screen."""
    lines = [[*table.header], *([shown(v) for v in row] for row in table.rows)]
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
