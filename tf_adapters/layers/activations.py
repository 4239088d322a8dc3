"""Activations by the names that checkpoints and papers use."""

import math
import typing

import keras
from keras import ops

from tf_adapters.common.checks import check_known

HALF = ("bfloat16", "float16")


def gelu(x):
    """Gaussian error linear unit in its exact form, `x Phi(x)`.

    Written with erf in the order that TensorFlow's graph optimiser knows, which
    then computes it within the matrix product before it; Keras's has erfc.
    """
    return _in_float32(lambda x: (ops.erf(x * math.sqrt(0.5)) + 1) * 0.5 * x, x)


def gelu_tanh(x):
    """GELU in the tanh form of BERT's and Houlsby's code (`gelu_new`)."""
    return _in_float32(lambda x: ops.gelu(x, approximate=True), x)


def _in_float32(function, x):
    """Computes a function of `x` in float32 where `x` has fewer digits.

    Both forms of GELU subtract numbers close to 1 in their lower tail: in
    bfloat16 they would be a quarter off at -2.8, and 0 below -3.1.
    """
    if keras.backend.standardize_dtype(x.dtype) not in HALF:
        return function(x)
    return ops.cast(function(ops.cast(x, "float32")), x.dtype)


ACTIVATIONS = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": ops.relu,
    "silu": ops.silu,
    "tanh": ops.tanh,
    # PyTorch's slope, which Pfeiffer's code has; Keras's is 0.2.
    "leaky_relu": lambda x: ops.leaky_relu(x, negative_slope=0.01),
    "linear": lambda x: x,
}
Activation = typing.Literal[tuple(ACTIVATIONS)]


def get_activation(name):
    """Returns the activation called `name`.

    Raises:
        UserError: If no activation has that name; the message lists all.
    """
    check_known("activation", name, ACTIVATIONS)
    return ACTIVATIONS[name]
