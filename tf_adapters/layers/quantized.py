"""Reads weights of Keras layers that may be quantized to integers.

Keras stores the integers as the layer's `kernel` or `embeddings`, and the
scales separately: one for each output (int8), or a scale and a zero point for
each group of inputs of each output (int4). Two int4 numbers share a byte. This
module unpacks them with float operations, which every export format has.
"""

import math
from typing import Any

import keras
from keras import ops

from tf_adapters.common.types import Tensor


def is_quantized(variable: Tensor) -> bool:
    """Returns whether a variable or tensor holds integers."""
    return "int" in keras.backend.standardize_dtype(variable.dtype)


def kernel_of(layer: Any, inputs: int) -> Tensor:
    """Returns the kernel of a dense layer as a matrix of floats.

    If an input is multiplied by this matrix, gradients flow to the input as in
    a layer with float weights.

    Args:
        layer: Built layer with a `kernel`, such as `keras.layers.EinsumDense`.
        inputs: Integer. Number of inputs of the layer.

    Returns:
        Float tensor of shape `(inputs, outputs)`.
    """
    if layer.quantization_mode == "int4":
        outputs = layer.kernel_scale.shape[-1]
        values = _unpacked(_stored(layer, "kernel"), outputs)
        return _of_groups(
            values, layer.kernel_scale, layer.kernel_zero, layer.g_idx, axis=0
        )
    kernel = layer.kernel
    matrix = ops.reshape(kernel, (inputs, math.prod(kernel.shape) // inputs))
    if layer.quantization_mode is None:
        return matrix
    # Keras's scale is that of quantization: integer = float * scale.
    scale = ops.reshape(layer.kernel_scale, (1, -1))
    return ops.cast(matrix, "float32") / scale


def embeddings_of(layer: Any) -> Tensor:
    """Returns the embedding matrix of a layer as floats.

    Args:
        layer: Built `keras.layers.Embedding`.

    Returns:
        The layer's variable, or a float tensor if the layer is quantized, of
        shape `(ids, width)`.
    """
    if layer.quantization_mode is None:
        return layer.embeddings
    return look_up(layer, ops.arange(layer.input_dim))


def look_up(layer: Any, ids: Tensor) -> Tensor:
    """Returns the embeddings of ids, as `layer(ids)` does.

    With int4, only the vectors of `ids` are unpacked. Keras's layer would
    unpack its whole table.

    Args:
        layer: Built `keras.layers.Embedding`.
        ids: Tensor of integers of any shape.
    """
    if layer.quantization_mode != "int4":
        return layer(ids)
    flat = ops.reshape(ids, (-1,))
    packed = ops.take(_stored(layer, "embeddings"), flat, axis=0)
    vectors = _of_groups(
        _unpacked(packed, layer.output_dim),
        ops.take(layer.embeddings_scale, flat, axis=0),
        ops.take(layer.embeddings_zero, flat, axis=0),
        layer.g_idx,
        axis=1,
    )
    shape = (*ops.shape(ids), layer.output_dim)
    return ops.cast(ops.reshape(vectors, shape), layer.compute_dtype)


def _stored(layer: Any, name: str) -> keras.Variable:
    """Returns the variable called `name` of a layer, a packed int4 matrix.

    Each byte of the variable holds two int4 numbers.
    """
    return next(v for v in layer.weights if v.name == name)


def _unpacked(packed: Tensor, columns: int) -> Tensor:
    """Returns the int4 numbers in the bytes of a matrix, as floats.

    Args:
        packed: int8 tensor of shape `(rows, ceil(columns / 2))`. The lower
            half of a byte holds the first of its two numbers.
        columns: Integer. Number of columns of the result.
    """
    both = ops.cast(packed, "float32")
    high = ops.floor(both / 16)
    low = both - 16 * high
    # From 0..15 to -8..7.
    low = low - 16 * ops.floor(low / 8)
    pairs = ops.stack([low, high], axis=-1)
    return ops.reshape(pairs, (-1, 2 * packed.shape[-1]))[:, :columns]


def _of_groups(
    values: Tensor, scale: Tensor, zero: Tensor, groups: Tensor, axis: int
) -> Tensor:
    """Dequantizes integers that have a scale and a zero point per group.

    Args:
        values: Integers, as a float matrix.
        scale: Scales of the groups.
        zero: Zero points of the groups.
        groups: Index of the group of each entry along `axis`.
        axis: Axis of `values` that is divided into groups.
    """
    groups = ops.cast(groups, "int32")
    zero = ops.cast(ops.take(zero, groups, axis=axis), "float32")
    return (values - zero) * ops.take(scale, groups, axis=axis)
