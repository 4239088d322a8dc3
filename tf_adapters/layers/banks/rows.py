"""Reads and writes single rows of a variable, and multiplies by chosen rows."""

from typing import Any

import keras
from keras import ops

from tf_adapters.common.types import Tensor


def take_rows(variable: keras.Variable, rows: Tensor) -> Tensor:
    """Returns the rows of a variable, `(len(rows), ...)`.

    TensorFlow gathers from the variable itself. Converting the variable to a
    tensor first would copy all of its rows in each call, once `assign_row` has
    written a row.

    Args:
        variable: Variable of shape `(n, ...)`.
        rows: `(batch,)` integers in `[0, n)`.
    """
    if keras.backend.backend() == "tensorflow":
        return variable.value.sparse_read(rows)
    return ops.take(variable, rows, axis=0)


def gather(x: Tensor, rows: Tensor) -> Tensor:
    """Returns the rows of a tensor along its first axis.

    Keras's `ops.take` also accepts negative indices. In TensorFlow this costs
    six more operations, which a small batch notices.

    Args:
        x: Tensor of shape `(n, ...)`.
        rows: `(m,)` integers in `[0, n)`.
    """
    if keras.backend.backend() != "tensorflow":
        return ops.take(x, rows, axis=0)
    import tensorflow as tf

    return tf.gather(x, rows)


def assign_row(variable: keras.Variable, row: int, value: Any) -> None:
    """Assigns one row of a variable; the other rows are not copied.

    Args:
        variable: Variable of shape `(n, ...)`.
        row: Integer in `[0, n)`.
        value: Array of the shape of a row.
    """
    value = ops.cast(value, variable.dtype)[None]
    if keras.backend.backend() == "tensorflow":
        variable.value.scatter_nd_update([[row]], value)
    else:
        variable.assign(ops.scatter_update(variable, [[row]], value))


def multiply(x: Tensor, kernels: keras.Variable, rows: Tensor) -> Tensor:
    """Multiplies each example by its own kernel.

    The kernels are copied to one tensor for the batch. This is the only place
    that decides how a bank multiplies.

    Args:
        x: `(batch, tokens, inputs)`, or `(1, tokens, inputs)` for vectors that
            the examples share.
        kernels: Variable of shape `(n, inputs, outputs)`.
        rows: `(batch,)` integers in `[0, n)`.

    Returns:
        `(batch, tokens, outputs)`, of the type of `x`.
    """
    return ops.matmul(x, ops.cast(take_rows(kernels, rows), x.dtype))
