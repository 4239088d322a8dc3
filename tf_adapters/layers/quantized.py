"""Reads weights of Keras layers that may be quantized to integers.

Keras stores the integers as the layer's `kernel` or `embeddings`, and the
scales apart: one for each output (int8), or a scale and a zero point for each
group of inputs of each output (int4).
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

    Gradients flow through the product with it to the layer's input, as through
    that of a layer with these float weights.

    Args:
        layer: Built layer with a `kernel`, such as `keras.layers.EinsumDense`.
        inputs: Integer. Number of inputs of the layer.

    Returns:
        Float tensor of shape `(inputs, outputs)`.
    """
    kernel = layer.kernel
    matrix = ops.reshape(kernel, (inputs, math.prod(kernel.shape) // inputs))
    if not is_quantized(kernel):
        return matrix
    floats = ops.cast(matrix, "float32")
    if layer.quantization_mode == "int8":
        # Keras's scale is that of quantization: integer = float * scale.
        return floats / ops.reshape(layer.kernel_scale, (1, -1))
    return _of_groups(
        floats, layer.kernel_scale, layer.kernel_zero, layer.g_idx, axis=0
    )


def embeddings_of(layer: Any) -> Tensor:
    """Returns the table of an embedding layer, as floats.

    Args:
        layer: Built `keras.layers.Embedding`.

    Returns:
        The layer's variable, or a float tensor if the layer is quantized, of
        shape `(ids, width)`.
    """
    table = layer.embeddings
    if not is_quantized(table):
        return table
    floats = ops.cast(table, "float32")
    if layer.quantization_mode == "int8":
        return floats / ops.expand_dims(layer.embeddings_scale, 1)
    return _of_groups(
        floats,
        layer.embeddings_scale,
        layer.embeddings_zero,
        layer.g_idx,
        axis=1,
    )


def look_up(layer: Any, ids: Tensor) -> Tensor:
    """Returns the vectors of ids, `layer(ids)`.

    With int4, Keras's layer unpacks its whole table at each call.

    Args:
        layer: Built `keras.layers.Embedding`.
        ids: `(batch, tokens)` integers.
    """
    if layer.quantization_mode != "int4":
        return layer(ids)
    packed = next(v for v in layer.weights if v.name == "embeddings")
    flat = ops.reshape(ids, (-1,))
    rows = keras.quantizers.unpack_int4(
        ops.take(packed, flat, axis=0), layer.output_dim, axis=-1
    )
    vectors = _of_groups(
        ops.cast(rows, "float32"),
        ops.take(layer.embeddings_scale, flat, axis=0),
        ops.take(layer.embeddings_zero, flat, axis=0),
        layer.g_idx,
        axis=1,
    )
    shape = (*ops.shape(ids), layer.output_dim)
    return ops.cast(ops.reshape(vectors, shape), layer.compute_dtype)


def _of_groups(
    values: Tensor, scale: Tensor, zero: Tensor, groups: Tensor, axis: int
) -> Tensor:
    """Returns floats, of integers with one scale and zero point per group."""
    groups = ops.cast(groups, "int32")
    zero = ops.cast(ops.take(zero, groups, axis=axis), "float32")
    return (values - zero) * ops.take(scale, groups, axis=axis)
