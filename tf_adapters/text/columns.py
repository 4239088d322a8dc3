"""Converts a user's texts and labels to columns.

Users may pass lists, arrays, pairs, tables of pandas and `datasets`, and lists
of dicts. Only this file and `table_reading` read these forms.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import sys
from typing import Any

import numpy as np

from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.tasks.output_kinds import KINDS
from tf_adapters.text.table_reading import as_array
from tf_adapters.text.table_reading import listed
from tf_adapters.text.table_reading import read_table

# Default name of the label column. The other constants are default names of
# text columns.
LABEL = "label"
_ONE_TEXT = {"class_a_word": ("tokens",)}
_TWO_TEXTS = {"answers": ("question", "context"), "choice": ("text", "choices")}
_SEVERAL = ("text_a", "text_b", "text_c")
_NUMBER = int | float | np.number | np.bool_


def columns_of(
    texts: Any,
    labels: Any,
    head: heads.Head,
    text: str | Sequence[str] | None = None,
    label: str | None = None,
    known: Sequence[str] | None = None,
) -> tuple[tuple[str, ...], dict[str, list[Any]]]:
    """Converts a user's texts and labels to columns.

    Args:
        texts: See `rows.rows_of`.
        labels: See `rows.rows_of`.
        head: `Head`.
        text: See `rows.rows_of`.
        label: Name of the table column with the labels.
        known: See `rows.rows_of`.

    Returns:
        The names of the text fields, and a dict of columns: a list for each
        name and, if there are labels, for `LABEL`. All lists have the same
        length.

    Raises:
        UserError: If `rows_of` does not support the texts, a column is missing,
            there are labels and a column with labels, the labels are a table,
            or the number of labels differs from the number of texts.
    """
    if labels is not None and label is not None:
        raise UserError(
            "Pass the labels as `y`, or name their column as `label`, not "
            f"both. Received: label={shown(label)}"
        )
    if not isinstance(labels, list) and read_table(labels) is not None:
        raise UserError(
            "Labels are a list or one column, not a table: pass "
            '`table["stars"]`, for example. For several classes per text, pass '
            "an array with a 0 or 1 for each class, in the order of the head's "
            f"labels. Received: {shown(labels)}"
        )
    table = read_table(texts, head.labels)
    if labels is None and isinstance(texts, Mapping):
        labels = texts.get(LABEL if label is None else label)
    if table is None:
        fields, named = _from_sequence(texts, head)
    else:
        fields = table_fields(table[0], head, text, known)
        named = _from_table(*table, fields, labels, label)
    labels = named.pop(LABEL, None) if labels is None else labels
    if labels is not None:
        named[LABEL] = listed(_class_lists(as_array(labels), head))
    _check_lengths(named)
    return fields, named


def _class_lists(labels: Any, head: heads.Head) -> Any:
    """Converts an array with a 0 or 1 for each class to lists of class names.

    Other labels, and labels of heads with one class per text, are returned
    unchanged.
    """
    is_hot = (
        KINDS[heads.name_of(head)].label == "classes"
        and isinstance(labels, np.ndarray)
        and labels.shape[1:] == (len(head.labels),)
        and _are_zeros_and_ones(labels)
    )
    if not is_hot:
        return labels
    return [[head.labels[i] for i in np.flatnonzero(row)] for row in labels]


def _are_zeros_and_ones(values: np.ndarray) -> bool:
    if values.dtype.kind == "O":
        # Comparing the missing values of pandas gives no boolean.
        are_numbers = all(isinstance(v, _NUMBER) for v in values.flat)
    else:
        are_numbers = values.dtype.kind in "biuf"
    return are_numbers and bool(np.isin(values, (0, 1)).all())


def names_of(text: str | int | Iterable[Any]) -> tuple[str, ...]:
    """Returns the names of text columns as a tuple of strings.

    Args:
        text: A name, or a list of names. Columns of pandas may have numbers as
            names.
    """
    if isinstance(text, str) or not isinstance(text, Iterable):
        return (str(text),)
    return tuple(map(str, text))


def is_dataset(texts: Any) -> bool:
    """Returns whether `texts` is a `tf.data.Dataset`."""
    # If TensorFlow is not imported yet, `texts` cannot be a `tf.data.Dataset`.
    tf = sys.modules.get("tensorflow")
    return tf is not None and isinstance(texts, tf.data.Dataset)


def names_of_dataset(
    dataset: Any, text: Any = None, label: Any = None
) -> dict[str, Any]:
    """Returns the arguments `text` and `label` that a dataset has columns for.

    The texts of a tuple have no names, and its labels neither.
    """
    spec = dataset.element_spec
    element = spec if isinstance(spec, tuple) else (spec,)
    has_columns = isinstance(element[0], dict)
    return {
        "text": text if has_columns else None,
        "label": label if has_columns and len(element) == 1 else None,
    }


def holds_features(data: Any) -> bool:
    """Returns whether a user's data are token features instead of texts."""
    spec = data.element_spec if is_dataset(data) else data
    first = spec[0] if is_dataset(data) and isinstance(spec, tuple) else spec
    return isinstance(first, dict) and "token_ids" in first


def _from_table(
    names: list[str],
    column: Callable[[str], list[Any]],
    fields: Sequence[str],
    labels: Any,
    label: str | None,
) -> dict[str, list[Any]]:
    named = {name: column(name) for name in fields}
    label = LABEL if label is None else str(label)
    if labels is None and label in names:
        named[LABEL] = column(label)
    elif labels is None and label != LABEL:
        raise no_column("label", label, names)
    return named


def table_fields(
    names: list[str],
    head: heads.Head,
    text: str | Sequence[str] | None = None,
    known: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Returns the names of the table columns that hold the texts.

    Args:
        names: Names of all columns.
        head: `Head`.
        text: See `rows.rows_of`.
        known: See `rows.rows_of`.

    Raises:
        UserError: If a column is missing, or no column has a default name.
    """
    if text is not None:
        fields = names_of(text)
    elif known and set(known) <= {*names}:
        fields = tuple(known)
    else:
        kind = KINDS[heads.name_of(head)]
        usual = [_ONE_TEXT.get(kind.label), _TWO_TEXTS.get(kind.label)]
        several = [n for n in reversed(kind.num_fields) if n > 1]
        usual += [("text",), *map(_several, several)]
        there = [given for given in usual if given and set(given) <= {*names}]
        if not there:
            raise UserError(
                "Say which column holds the texts: `text=...`, or rename "
                f"columns to {shown(list(usual_fields(head)))}. The columns "
                f"are {shown(list(names))}."
            )
        fields = there[0]
    for name in fields:
        if name not in names:
            raise no_column("text", name, names)
    return fields


def no_column(argument: str, name: str, names: Iterable[str]) -> UserError:
    """Returns the error for a column that is missing in a table."""
    return UserError(
        f"There is no column `{name}`, which `{argument}` names. The columns "
        f"are {shown(list(names))}."
    )


def _from_sequence(
    texts: Any, head: heads.Head
) -> tuple[tuple[str, ...], dict[str, list[Any]]]:
    is_text = isinstance(texts, str | bytes)
    if is_text or not (
        isinstance(texts, Sequence | np.ndarray) or _is_series(texts)
    ):
        hint = " Put one text into a list: `[text]`." if is_text else ""
        raise UserError(
            "Expected a list of texts, a table with columns, or a "
            f"`tf.data.Dataset` of strings. Received: {shown(texts)}.{hint}"
        )
    texts = listed(texts)
    first = next((text for text in texts if text is not None), "")
    has_several = isinstance(first, list | tuple | np.ndarray)
    fields = usual_fields(head, max(2, len(first)) if has_several else 1)
    return fields, _split(texts, fields)


def _is_series(texts: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return bool(pandas) and isinstance(texts, pandas.Series | pandas.Index)


def usual_fields(head: heads.Head, num_texts: int = 1) -> tuple[str, ...]:
    """Returns the default names of the text fields for a head.

    Args:
        head: `Head`.
        num_texts: Number of texts of a row. Defaults to 1.
    """
    kind = KINDS[heads.name_of(head)]
    for names in (_ONE_TEXT, _TWO_TEXTS):
        if kind.label in names:
            return names[kind.label]
    if num_texts == 1:
        return ("text",)
    return _several(max(2, min(num_texts, max(kind.num_fields))))


def _several(num_texts: int) -> tuple[str, ...]:
    """Returns the default field names for a pair or a triple of texts."""
    return _SEVERAL[:num_texts]


def _split(texts: list[Any], fields: tuple[str, ...]) -> dict[str, list[Any]]:
    """Splits a list of texts, pairs or triples into a list for each field.

    Returns a dict from field name to list.
    """
    if len(fields) == 1:
        return {fields[0]: list(texts)}
    for place, pair in enumerate(texts):
        is_list = isinstance(pair, list | tuple | np.ndarray)
        if not is_list or len(pair) != len(fields):
            raise UserError(
                f"Row {place} (the first is 0) must hold {len(fields)} texts, "
                f"like the others. Received: {shown(pair)}"
            )
    return dict(zip(fields, map(list, zip(*texts, strict=True)), strict=True))


def _check_lengths(named: dict[str, list[Any]]) -> None:
    lengths = {name: len(values) for name, values in named.items()}
    if len(set(lengths.values())) > 1:
        received = ", ".join(f"{n} in `{name}`" for name, n in lengths.items())
        raise UserError(
            f"There must be a label for each text. Received: {received}"
        )
