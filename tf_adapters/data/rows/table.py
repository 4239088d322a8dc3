"""The class `Table`, which holds the unchecked rows of a data file."""

from collections.abc import Iterable
import dataclasses
from typing import Any

from tf_adapters.common.errors import DataError

_MAX_REPORTED = 10


@dataclasses.dataclass
class Table:
    """The rows of a data file, before they are checked for a task.

    Attributes:
        origin: Name of the file in error messages.
        rows: Pairs of line number and dict of fields. A list, or an iterator
            that adds to `problems` as rows are read.
        columns: Names in the header line, or `None` (default) if there is no
            header.
        problems: Pairs of line number and a text that says what is wrong.
        unit: What the line numbers count. Defaults to `"line"`.
    """

    origin: str
    rows: Iterable[tuple[int, dict[str, Any]]]
    columns: tuple[str, ...] | None = None
    problems: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    unit: str = "line"

    def raise_problems(self) -> None:
        """Raises a `DataError` with the first ten problems, if any."""
        if not self.problems:
            return
        shown = sorted(self.problems)[:_MAX_REPORTED]
        lines = [f"  {self.unit} {line}: {what}" for line, what in shown]
        if len(self.problems) > len(shown):
            lines.append(f"  and {len(self.problems) - len(shown)} more")
        raise DataError(
            f"{len(self.problems)} malformed rows in {self.origin}:\n"
            + "\n".join(lines)
            + "\nCorrect or remove them."
        )

    def raise_empty(self, rows: Any) -> None:
        """Raises a `DataError` if there are neither rows nor problems."""
        if not rows and not self.problems:
            raise DataError(
                f"{self.origin} holds no rows: it is empty, or has a header "
                "line and nothing else. Expected a row for each example."
            )
