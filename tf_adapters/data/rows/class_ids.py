"""Decides whether a label in a file is a class name or a class id.

The rule is the same for all heads, in JSON and in text. The first match counts:

1. `null` and empty text mean no label.
2. A class name means that class. JSON's `2` can be the name "2", and `true` the
   name "True" or "true".
3. An integer, or its digits, is a class id, counted from 0, and -1 means no
   label. This applies only if no class name is a number. With the names "1",
   "2" and "3", ids and names could be confused, so `0` is an error.

Integers in TensorFlow Datasets are always ids; see `tfds_rows`.
"""

from collections.abc import Sequence
import math
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown


def class_id(value: object, labels: Any) -> int | None:
    """Returns the class id of a label, or `None` for no label.

    Args:
        value: Class name or id, as JSON or text.
        labels: Class names in the order of their ids.

    Raises:
        UserError: If the value is neither a name nor an id of a class.
    """
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        value = str(value) if str(value) in labels else str(value).lower()
    if not isinstance(value, (int, str)):
        raise UserError(
            f"a label must be a class name or id, received {shown(value)} "
            f"({type(value).__name__})"
        )
    return _id_of_text(str(value), labels)


def _id_of_text(text: str, labels: Sequence[str]) -> int | None:
    if text in labels:
        return labels.index(text)
    names_are_numbers = any(map(is_number, labels))
    if _is_integer(text) and not names_are_numbers:
        if int(text) == -1:
            return None
        if 0 <= int(text) < len(labels):
            return int(text)
    names = cut(", ".join(repr(label) for label in labels))
    ids = "" if names_are_numbers else f", or an id from 0 to {len(labels) - 1}"
    raise UserError(
        f"unknown label {shown(text)}; expected one of {names}{ids}"
        f"{_spelled_otherwise(text, labels)}"
    )


def _spelled_otherwise(text: str, labels: Sequence[str]) -> str:
    plain = text.strip().casefold()
    alike = [label for label in labels if label.strip().casefold() == plain]
    return f". Did you mean {alike[0]!r}?" if alike else ""


def is_number(name: str) -> bool:
    """Returns whether a class name is a finite number, such as "2" or "2.0"."""
    try:
        return math.isfinite(float(name))
    except ValueError:
        return False


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
