"""Texts and labels as a Keras user has them become the rows of a task.

Lists, arrays, pairs, tables of pandas and `datasets`, and lists of dicts are
read here and nowhere else; `typed_rows` then checks every row.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import sys

import numpy as np

from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.data.rows.files import Table
from tf_adapters.data.rows.typed_rows import typed_rows
from tf_adapters.tasks.output_kinds import KINDS
from tf_adapters.tasks.task import Task

# The names that the texts of a row get where the user gave none.
_ONE_TEXT = {"words": ("tokens",)}
_TWO_TEXTS = {"answers": ("question", "context"), "choice": ("text", "choices")}
_PAIR = ("text_a", "text_b")
_LABEL = "label"


@dataclasses.dataclass(frozen=True)
class TextRows:
    """Checked rows, and which of their fields are texts.

    Attributes:
        fields: Names of the text fields.
        rows: List of dicts with these and `"label"`.
    """

    fields: tuple[str, ...]
    rows: list

    def __len__(self):
        return len(self.rows)

    def part(self, first, last=None):
        """Returns the rows from one place to another."""
        return TextRows(self.fields, self.rows[first:last])


def rows_of(texts, labels, head, text=None, label=None, labelled=True):
    """Returns the rows of a head's task.

    Args:
        texts: List, tuple, array or `pandas.Series` of texts, or of pairs; of
            lists of words for tags; of a question and its text for spans, of a
            question and its list of choices for choices. Or a table: a
            `pandas.DataFrame`, a `datasets.Dataset`, a list of dicts, or a
            dict of columns.
        labels: A label for each text, by name or by id; `None` where a column
            holds them, or there are none.
        head: `Head`.
        text: Name of the column with the texts of a table, or names of two.
        label: Name of the column with the labels of a table.
        labelled: Whether labels are needed.

    Returns:
        `TextRows`.

    Raises:
        UserError: If the texts are nothing of the above, or a row is malformed;
            names the first ten.
    """
    columns = table_columns(texts)
    if columns is not None:
        fields, table = _from_table(columns, labels, head, text, label)
    else:
        fields, table = _from_sequence(texts, labels, head)
    wanted = "required" if labelled else "ignored"
    return TextRows(fields, typed_rows(table, _task(head, fields), wanted))


def _task(head, fields):
    kind = heads.name_of(head)
    return Task(
        name="texts",
        text_fields=fields,
        labels=tuple(head.labels),
        head=kind,
        label_field=_LABEL,
    )


def table_columns(texts):
    """Returns a table as a dict from a column's name to a list, or `None`."""
    pandas, datasets = map(sys.modules.get, ("pandas", "datasets"))
    if pandas and isinstance(texts, pandas.DataFrame):
        return {str(name): texts[name].tolist() for name in texts.columns}
    if datasets and isinstance(texts, datasets.Dataset):
        return {name: list(texts[name]) for name in texts.column_names}
    if isinstance(texts, Mapping):
        return {str(name): _listed(values) for name, values in texts.items()}
    if isinstance(texts, list) and texts and isinstance(texts[0], Mapping):
        names = dict.fromkeys(name for row in texts for name in row)
        return {name: [row.get(name) for row in texts] for name in names}
    return None


def _from_table(columns, labels, head, text, label):
    fields = _text_fields(columns, head, text)
    label = label or _LABEL
    named = {name: columns[name] for name in fields}
    if labels is not None:
        named[_LABEL] = _listed(labels)
    elif label in columns:
        named[_LABEL] = columns[label]
    elif label != _LABEL:
        raise _no_column("label", label, columns)
    _check_lengths(named)
    rows = [
        dict(zip(named, map(plain, values), strict=True))
        for values in zip(*named.values(), strict=True)
    ]
    return fields, _table(rows)


def _text_fields(columns, head, text):
    if text is not None:
        fields = (text,) if isinstance(text, str) else tuple(text)
    else:
        kind = KINDS[heads.name_of(head)].label
        usual = [_ONE_TEXT.get(kind), _TWO_TEXTS.get(kind), ("text",), _PAIR]
        there = [names for names in usual if names and set(names) <= {*columns}]
        if not there:
            raise UserError(
                "Say which column holds the texts: `text=...`. The columns "
                f"are {shown(list(columns))}."
            )
        fields = there[0]
    for name in fields:
        if name not in columns:
            raise _no_column("text", name, columns)
    return fields


def _no_column(argument, name, columns):
    return UserError(
        f"There is no column `{name}`, which `{argument}` names. The columns "
        f"are {shown(list(columns))}."
    )


def _from_sequence(texts, labels, head):
    is_text = isinstance(texts, str | bytes)
    if is_text or not (
        isinstance(texts, Sequence | np.ndarray) or _is_series(texts)
    ):
        hint = " Put one text into a list: `[text]`." if is_text else ""
        raise UserError(
            "Expected a list of texts, a table with columns, or a "
            f"`tf.data.Dataset` of strings. Received: {shown(texts)}.{hint}"
        )
    texts = _listed(texts)
    fields = _fields_of_first(texts, head)
    named = _split(texts, fields)
    if labels is not None:
        named[_LABEL] = _listed(labels)
    _check_lengths(named)
    rows = [
        dict(zip(named, map(plain, values), strict=True))
        for values in zip(*named.values(), strict=True)
    ]
    return fields, _table(rows)


def _is_series(texts):
    pandas = sys.modules.get("pandas")
    return bool(pandas) and isinstance(texts, pandas.Series | pandas.Index)


def _fields_of_first(texts, head):
    kind = KINDS[heads.name_of(head)].label
    if kind == "class_a_word":
        return ("tokens",)
    if kind in _TWO_TEXTS:
        return _TWO_TEXTS[kind]
    first = next((text for text in texts if text is not None), "")
    return _PAIR if isinstance(first, list | tuple | np.ndarray) else ("text",)


def _split(texts, fields):
    """Returns a list for each field."""
    if len(fields) == 1:
        return {fields[0]: list(texts)}
    for place, pair in enumerate(texts):
        if isinstance(pair, str) or len(pair or ()) != len(fields):
            raise UserError(
                f"Row {place} (the first is 0) must hold {len(fields)} texts, "
                f"like the others. Received: {shown(pair)}"
            )
    return dict(zip(fields, map(list, zip(*texts, strict=True)), strict=True))


def _listed(values):
    """Returns plain Python values of a list, an array, or a series."""
    return values.tolist() if hasattr(values, "tolist") else list(values)


def plain(value):
    """Returns a value as a file would have it: no NumPy, no NaN, no NA."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, tuple):
        value = list(value)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    # The missing values of pandas answer no comparison.
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return None if isinstance(value, float) and value != value else value


def _check_lengths(named):
    lengths = {name: len(values) for name, values in named.items()}
    if len(set(lengths.values())) > 1:
        received = ", ".join(f"{n} in `{name}`" for name, n in lengths.items())
        raise UserError(
            f"There must be a label for each text. Received: {received}"
        )


def _table(rows):
    return Table("the texts", list(enumerate(rows)), unit="row")
