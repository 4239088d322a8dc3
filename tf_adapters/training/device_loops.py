"""Evaluates several batches in one call to the device."""

from collections.abc import Callable
from typing import Any

from keras import ops
import numpy as np
import tensorflow as tf

from tf_adapters.data.batches.batch_plan import Batch

# Limit in bytes for the outputs of one call, which stay on the device until
# the call ends.
_MOST_BYTES = 1 << 28


def num_batches(
    function: Callable[..., tf.Tensor], inputs: dict[str, Any], most: int
) -> int:
    """Returns the number of batches whose outputs fit into one device call.

    Args:
        function: Function of a dict of inputs that returns a tensor.
        inputs: Dict of `tf.TensorSpec` with the shapes of a batch.
        most: Largest number to return. The smallest is 1.
    """
    traced = tf.function(function, autograph=False).get_concrete_function(
        inputs
    )
    output = traced.structured_outputs
    if not output.shape.is_fully_defined():
        return 1
    size = output.shape.num_elements() * output.dtype.size
    return max(1, min(most, _MOST_BYTES // size))


def filled_up(batches: list[Batch], at_once: int) -> list[Batch]:
    """Returns batches whose number is divisible by `at_once`.

    The batches that are added at the end have padding rows only.
    """
    last = batches[-1]
    empty = Batch(np.zeros(0, "int32"), last.length, last.size)
    return [*batches, *[empty] * (-len(batches) % at_once)]


def loop(
    function: Callable[..., tf.Tensor], inputs: dict[str, tf.Tensor]
) -> tf.Tensor:
    """Calls a function for each of several batches, in a loop on the device.

    Args:
        function: Function of a dict of inputs that returns a tensor.
        inputs: Dict of tensors `(batches, rows, ...)`.

    Returns:
        The outputs of all batches, `(batches * rows, ...)`.
    """
    outputs = ops.map(function, inputs)
    return tf.reshape(outputs, [-1, *outputs.shape[2:]])
