"""Tests that GELU and layer norms have the same gradients in training."""

import keras
from keras import ops
import numpy as np
import pytest
import tensorflow as tf

from tf_adapters.layers import activations
from tf_adapters.layers import normalization
from tf_adapters.layers import own_gradients

_FUNCTIONS = {
    "gelu": lambda x, *_: activations.gelu(x),
    "gelu_tanh": lambda x, *_: activations.gelu_tanh(x),
    "layer_norm": lambda *weights: normalization.layer_norm(*weights, 1e-5),
}


def _arguments(dtype):
    generator = np.random.default_rng(0)
    x = 4 * generator.normal(size=(2, 5, 16))
    weights = 1 + generator.normal(size=(2, 16))
    return [tf.constant(x, dtype), *tf.unstack(tf.cast(weights, "float32"))]


def _values_and_gradients(function, arguments, in_use):
    """Returns the outputs and the gradients of a weighted sum of them."""
    weights = tf.constant(np.random.default_rng(1).normal(size=(2, 5, 16)))

    @tf.function
    def compute(arguments):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            with own_gradients.own_gradients(in_use):
                outputs = function(*arguments)
            total = tf.reduce_sum(outputs * tf.cast(weights, outputs.dtype))
        return outputs, tape.gradient(total, arguments)

    outputs, gradients = compute(arguments)
    return [outputs, *(one for one in gradients if one is not None)]


@pytest.mark.parametrize("name", _FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradients_equal_those_of_automatic_differentiation(name, dtype):
    arguments, function = _arguments(dtype), _FUNCTIONS[name]
    plain = _values_and_gradients(function, arguments, False)
    own = _values_and_gradients(function, arguments, True)
    assert len(own) == len(plain) >= 2
    for ours, theirs in zip(own, plain, strict=True):
        assert ours.dtype == theirs.dtype
        # One rounding of bfloat16; for float32, of the sums.
        tolerance = 2e-5 if ours.dtype == tf.float32 else 2e-2
        np.testing.assert_allclose(
            tf.cast(ours, "float32"),
            tf.cast(theirs, "float32"),
            rtol=tolerance,
            atol=tolerance,
        )


@pytest.mark.parametrize("in_use", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_tail_keeps_its_digits_in_half_precision(dtype, in_use):
    x = tf.constant([-2.8, -3.5, 0.0, 3.5], dtype)
    exact = keras.ops.gelu(ops.cast(x, "float64"), approximate=False)
    with own_gradients.own_gradients(in_use):
        values = tf.cast(activations.gelu(x), "float64")
    # With erf in bfloat16, the first two would be 25 % and 100 % off.
    np.testing.assert_allclose(values, exact, rtol=5e-2, atol=1e-7)
