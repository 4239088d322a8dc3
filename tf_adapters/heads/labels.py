"""Checks of a head's class names and of the class ids in rows.

Rows contain ids. Names in files are converted to ids when the files are read;
see `data.rows.class_ids`.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import math
import numbers
from typing import Any

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor


def class_names(labels: Any, head: str) -> tuple[str, ...]:
    """Checks class names and returns them as a tuple, in the order of ids.

    Args:
        labels: Iterable of names, not a set or a dict. Other values raise an
            error.
        head: Name of the head's class, for the message.

    Raises:
        UserError: If there are fewer than two names, a name is not a non-empty
            string, two names are the same, or the names are a set or a dict,
            in which the order has no meaning.
    """
    # A string is an iterable of letters, which is never intended.
    # The order of a set differs from process to process. A dict may have ids.
    is_list = isinstance(labels, Iterable) and not isinstance(
        labels, str | set | frozenset | Mapping
    )
    names = tuple(labels) if is_list else ()
    problem = _problem(names) if is_list else shown(labels)
    if problem:
        raise UserError(
            f"`labels` of {head} must be the names of two classes or more, "
            "each of them once, in the order of their ids: "
            f"`{head}(labels=('no', 'yes'))`. Received: {problem}"
        )
    return names


def _problem(labels: tuple[object, ...]) -> str:
    for name in labels:
        if not isinstance(name, str) or not name:
            return f"{shown(name)} among them"
    for name, count in collections.Counter(labels).items():
        if count > 1:
            return f"{shown(name)} {count} times"
    return shown(labels) if len(labels) < 2 else ""


def check_class_id(place: int, label: Any, labels: tuple[str, ...]) -> None:
    """Raises a `UserError` if a row's label is not a class id.

    Args:
        place: Index of the row, for the message.
        label: The label, of any type.
        labels: Class names.
    """
    is_id = isinstance(label, numbers.Integral)
    if not is_id or not 0 <= int(label) < len(labels):
        raise UserError(
            f"Row {place} (the first is 0) has the label {shown(label)}; "
            f"expected a class id from 0 to {len(labels) - 1}: "
            f"{cut(', '.join(labels))}. Leave out rows without a label."
        )


def check_class_array(
    labels: Any, names: tuple[str, ...], others: tuple[int | None, ...] = ()
) -> None:
    """Raises a `UserError` if a number in an array is not a class id.

    Args:
        labels: Array of numbers, whose first axis has the rows.
        names: Class names.
        others: Further numbers that are allowed in the array; `None` is
            ignored. Defaults to none.
    """
    labels = np.atleast_1d(labels)
    is_id = (labels % 1 == 0) & (labels >= 0) & (labels < len(names))
    for other in others:
        is_id |= labels == other
    wrong = np.argwhere(~is_id)
    if len(wrong):
        label = labels[tuple(wrong[0])].item()
        check_class_id(int(wrong[0][0]), label, names)


def check_class_ids(
    place: int,
    label: Any,
    labels: tuple[str, ...],
    others: tuple[int, ...] = (),
) -> None:
    """Raises a `UserError` if a row's label is not a list of class ids.

    Args:
        place: Index of the row, for the message.
        label: The label, of any type.
        labels: Class names.
        others: Further numbers that are allowed in the list. Defaults to none.
    """
    try:
        is_list = np.ndim(label) == 1
    except ValueError:  # A list of lists of different lengths.
        is_list = False
    if not is_list:
        raise UserError(
            f"Row {place} (the first is 0) must have a list of class ids as "
            f"its label. Received: {shown(label)}"
        )
    for one in label:
        if one not in others:
            check_class_id(place, one, labels)


def check_number(place: int, label: object) -> None:
    """Raises a `UserError` if a row's label is not a finite number.

    Args:
        place: Index of the row, for the message.
        label: The label, of any type.
    """
    if not isinstance(label, numbers.Real) or not math.isfinite(label):
        raise UserError(
            f"Row {place} (the first is 0) has the label {shown(label)}; "
            "expected a finite number. Leave out rows without a label."
        )


def check_outputs(outputs: Tensor, names: Sequence[str]) -> None:
    """Raises a `UserError` if outputs do not have one number for each class.

    Args:
        outputs: Array that should have shape `(rows, len(names))`.
        names: Names of the classes or outputs.
    """
    shape = np.shape(outputs)
    if len(shape) < 2 or shape[-1] != len(names):
        raise UserError(
            f"Expected outputs of shape (rows, {len(names)}), a number for "
            f"each of {', '.join(names):.100}. Received: shape {shape}. Was "
            "the model made with another head?"
        )
