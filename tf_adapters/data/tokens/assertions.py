"""Assertions about tensors whose shapes and values only a call knows."""

import tensorflow as tf

from tf_adapters.common.errors import UserError


def after(assertions, tensors):
    """Returns tensors that nothing reads before the assertions hold.

    An operation that reads bad input can end the process. An assertion next to
    it could come too late.

    Args:
        assertions: List of what `tf.debugging.Assert` returns.
        tensors: Any structure of tensors.
    """
    with tf.control_dependencies(assertions):
        return tf.nest.map_structure(tf.identity, tensors)


def same_number_of_rows(tensors):
    """Returns a dict of tensors after a check that their batch sizes agree.

    Args:
        tensors: Dict from name to tensor `(batch, ...)`.

    Raises:
        UserError: If the batch sizes are known and differ. Where a graph leaves
            them open, its call raises `tf.errors.InvalidArgumentError`.
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
