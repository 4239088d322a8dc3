"""Computes gradients with the backend that Keras runs on."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor


def gradient(function: Callable[[Tensor], Tensor], x: Tensor) -> np.ndarray:
    """Returns the gradient of a function's sum, in the shape of `x`.

    Args:
        function: Function of a tensor that returns a tensor.
        x: The tensor at which to compute the gradient.

    Raises:
        UserError: If Keras runs on a backend other than TensorFlow and JAX.
    """
    backend = keras.backend.backend()
    if backend not in _GRADIENTS:
        raise UserError(
            "Explanations need gradients, which are computed with the backends "
            f"{' and '.join(_GRADIENTS)}. Received: {backend}. Set the "
            "environment variable KERAS_BACKEND before Python starts."
        )
    found = _GRADIENTS[backend](function, x)
    return np.asarray(keras.ops.cast(found, "float32"))


def _with_tensorflow(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(x)
        total = keras.ops.sum(function(x))
    return tape.gradient(total, x)


def _with_jax(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    import jax

    return jax.grad(lambda value: keras.ops.sum(function(value)))(x)


_GRADIENTS = {"tensorflow": _with_tensorflow, "jax": _with_jax}
