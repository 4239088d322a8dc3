"""Class names of a head, and class ids in rows.

Rows hold ids: names are read where files are, see `data.rows.class_ids`.
"""

import collections
from collections.abc import Iterable
import numbers

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown


def class_names(labels: object, head: str) -> tuple[str, ...]:
    """Returns class names as a tuple, in the order of their ids.

    Args:
        labels: What a head was given.
        head: The name of its class, for the message.

    Raises:
        UserError: If there are fewer than two, if one is no text, or if two
            are the same.
    """
    # A text is a list of letters, which nobody means.
    is_list = isinstance(labels, Iterable) and not isinstance(labels, str)
    names = tuple(labels) if is_list else ()
    problem = _problem(names) if is_list else shown(labels)
    if problem:
        raise UserError(
            f"`labels` of {head} must be the names of two classes or more, "
            "each of them once, in the order of their ids: "
            f"`{head}(labels=('no', 'yes'))`. Received: {problem}"
        )
    return names


def _problem(labels):
    for name in labels:
        if not isinstance(name, str) or not name:
            return f"{shown(name)} among them"
    for name, count in collections.Counter(labels).items():
        if count > 1:
            return f"{shown(name)} {count} times"
    return shown(labels) if len(labels) < 2 else ""


def check_class_id(place: int, label: object, labels: tuple[str, ...]) -> None:
    """Raises a `UserError` that names the row if a label is no class id.

    Args:
        place: Place of the row.
        label: Anything.
        labels: Class names.
    """
    is_id = isinstance(label, numbers.Integral)
    if not is_id or not 0 <= label < len(labels):
        raise UserError(
            f"Row {place} (the first is 0) has the label {shown(label)}; "
            f"expected a class id from 0 to {len(labels) - 1}: "
            f"{cut(', '.join(labels))}. Leave out rows without a label."
        )


def check_class_ids(
    place: int,
    label: object,
    labels: tuple[str, ...],
    others: tuple[int, ...] = (),
) -> None:
    """Raises a `UserError` that names the row if a label is no list of ids.

    Args:
        place: Place of the row.
        label: Anything.
        labels: Class names.
        others: Numbers that may stand among the ids.
    """
    if np.ndim(label) != 1:
        raise UserError(
            f"Row {place} (the first is 0) has no label that is a list of "
            f"class ids. Received: {shown(label)}"
        )
    for one in label:
        if one not in others:
            check_class_id(place, one, labels)


def check_outputs(outputs, names):
    """Raises a `UserError` unless the last axis has a number for each class."""
    shape = np.shape(outputs)
    if len(shape) < 2 or shape[-1] != len(names):
        raise UserError(
            f"Expected outputs of shape (rows, {len(names)}), a number for "
            f"each of {', '.join(names):.100}. Received: shape {shape}. Was "
            "the model made with another head?"
        )
