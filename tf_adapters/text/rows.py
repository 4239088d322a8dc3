"""Makes the rows of a task from columns, and checks them, on demand."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import typing
from typing import Any

import numpy as np

from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.data.rows.table import Table
from tf_adapters.data.rows.typed_rows import typed_rows
from tf_adapters.tasks.output_kinds import KINDS
from tf_adapters.tasks.task import Task
from tf_adapters.text import columns
from tf_adapters.text.columns import LABEL

# Maximum number of rows that exist as dicts and token arrays at a time. Other
# rows of large data sets take only the memory of their columns.
ROWS_AT_ONCE = 50_000


@dataclasses.dataclass(frozen=True)
class TextRows:
    """Rows that are created on demand from columns of equal length.

    Attributes:
        fields: Names of the text fields.
        columns: Dict with a list for each field and, if there are labels, for
            `"label"`. Values are as the user gave them.
        task: `Task` that defines a row.
        labels: `"required"` or `"ignored"`; see `typed_rows`.
    """

    fields: tuple[str, ...]
    columns: dict[str, Any]
    task: Task
    labels: str

    def __len__(self) -> int:
        return len(self.columns[self.fields[0]])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for first in range(0, len(self), ROWS_AT_ONCE):
            places = range(first, min(len(self), first + ROWS_AT_ONCE))
            yield from self.at(places)

    def at(self, places: Iterable[int]) -> list[dict[str, Any]]:
        """Checks the rows at the given indices, and returns a list of dicts.

        Raises:
            DataError: If rows are malformed. The message names the first ten.
        """
        table = Table(
            "the texts", [(i, self._as_given(i)) for i in places], unit="row"
        )
        return typed_rows(table, self.task, self.labels)

    def _as_given(self, place: int) -> dict[str, Any]:
        return {
            name: plain(values[place]) for name, values in self.columns.items()
        }

    def check(self) -> None:
        """Raises a `UserError` if there are no rows, or malformed rows."""
        if not len(self):
            raise UserError("There are no texts. Expected at least one.")
        for _ in self:
            pass

    def part(self, first: int, last: int | None = None) -> typing.Self:
        """Returns the rows from index `first` up to, but excluding, `last`."""
        cut = {name: list_[first:last] for name, list_ in self.columns.items()}
        return dataclasses.replace(self, columns=cut)

    def parts(self, size: int) -> Iterator[typing.Self]:
        """Yields `TextRows` of `size` consecutive rows, or fewer at the end."""
        for first in range(0, len(self), size):
            yield self.part(first, first + size)


def rows_of(
    texts: Any,
    labels: Any,
    head: heads.Head,
    text: str | Sequence[str] | None = None,
    label: str | None = None,
    labeled: bool = True,
    known: Sequence[str] | None = None,
) -> TextRows:
    """Converts texts and labels to the rows of a head's task, and checks them.

    Args:
        texts: List, tuple, array or `pandas.Series`. Its elements are texts or
            pairs. For tags, they are lists of words; for spans, a question and
            its text; for choices, a question and its list of choices. Or a
            table: a `pandas.DataFrame`, a `datasets.Dataset`, a list of dicts,
            or a dict of columns.
        labels: A label for each text, by name or id, or `None` if a column
            contains the labels or there are no labels. For several classes, a
            list for each text, or an array with a 0 or 1 for each class.
        head: `Head`.
        text: Name of the table column with the texts, or a list of names: two
            for pairs, three for triples.
        label: Name of the table column with the labels.
        labeled: Whether labels are required. If `False`, they are ignored.
            Defaults to `True`.
        known: Names of the columns that the model was trained on. A table that
            has them is read by them if `text` is `None`. Defaults to `None`,
            for the usual names only.

    Returns:
        `TextRows`.

    Raises:
        UserError: If `texts` has an unsupported type, the head takes no labels,
            or rows are malformed. The message names the first ten.
    """
    if labels is not None and KINDS[heads.name_of(head)].label == "none":
        raise UserError(
            f"A head of the kind {heads.name_of(head)} takes no labels. Leave "
            "them out. If the labels say which texts are related, pass only "
            f"the related rows. Received labels: {shown(labels)}"
        )
    fields, named = columns.columns_of(texts, labels, head, text, label, known)
    wanted = "required" if labeled else "ignored"
    rows = TextRows(fields, named, _task(head, fields), wanted)
    rows.check()
    return rows


def _task(head: heads.Head, fields: tuple[str, ...]) -> Task:
    return Task(
        name="texts",
        text_fields=fields,
        labels=tuple(head.labels),
        head=heads.name_of(head),
        label_field=LABEL,
    )


def plain(value: Any) -> Any:
    """Converts a value to plain Python, and a missing value to `None`."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, tuple):
        value = list(value)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, dict):  # Answers in a column of pandas.
        return {name: plain(one) for name, one in value.items()}
    # Comparisons with the missing values of pandas do not return a boolean.
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return None if isinstance(value, float) and value != value else value
