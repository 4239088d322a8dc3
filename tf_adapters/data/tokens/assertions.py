"""Assertions about tensors, which also work in a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import tensorflow as tf

from tf_adapters.common.errors import UserError

if TYPE_CHECKING:
    import numpy as np


def after(assertions: Sequence[Any], tensors: dict[str, np.ndarray]) -> Any:
    """Returns tensors that can be read only after the assertions have passed.

    An operation that reads bad input can end the process. Without a dependency
    the operation could run before the assertion.

    Args:
        assertions: List of operations from `tf.debugging.Assert`.
        tensors: Any structure of tensors.
    """
    with tf.control_dependencies(assertions):
        return tf.nest.map_structure(tf.identity, tensors)


def same_number_of_rows(tensors: dict[str, Any]) -> Any:
    """Checks that tensors have the same batch size, and returns them.

    Args:
        tensors: Dict from name to tensor `(batch, ...)`.

    Raises:
        UserError: If the batch sizes are known and differ. If a graph does not
            know them, it raises `tf.errors.InvalidArgumentError` when it runs.
    """
    expected = (
        "Expected the same number of rows in "
        f"{', '.join(f'`{name}`' for name in tensors)}. Received:"
    )
    known = {name: value.shape[0] for name, value in tensors.items()}
    if None in known.values():
        counts = tf.stack([tf.shape(value)[0] for value in tensors.values()])
        are_equal = tf.reduce_all(counts == counts[0])
        said = [expected, counts]
        return after([tf.debugging.Assert(are_equal, said)], tensors)
    if len(set(known.values())) > 1:
        received = ", ".join(f"{n} in `{name}`" for name, n in known.items())
        raise UserError(f"{expected} {received}.")
    return tensors
