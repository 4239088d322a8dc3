"""Activations, by the names that checkpoints and papers use."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import contextvars
import functools
import math
import typing

import keras
from keras import ops

from tf_adapters.common.checks import check_known
from tf_adapters.common.types import Tensor
from tf_adapters.layers import own_gradients

HALF = ("bfloat16", "float16")
_USES_ERFC = contextvars.ContextVar("uses_erfc", default=False)


@contextlib.contextmanager
def with_erfc() -> Iterator[None]:
    """Context manager in which `gelu` uses Keras's formula, with erfc.

    LiteRT has no erf, but its converter recognizes this formula as GELU.
    """
    token = _USES_ERFC.set(True)
    try:
        yield
    finally:
        _USES_ERFC.reset(token)


def gelu(x: Tensor) -> Tensor:
    """Computes the Gaussian error linear unit in its exact form, `x Phi(x)`.

    The operations, with erf, are in the order that TensorFlow's graph optimizer
    recognizes and fuses into the preceding matrix multiplication. Keras's GELU
    uses erfc, which is not fused.
    """
    if own_gradients.are_in_use():
        return own_gradients.gelu(x)
    if keras.backend.standardize_dtype(x.dtype) == "bfloat16":
        # With erfc, the lower tail keeps its digits, and TensorFlow fuses this
        # form as well if it is not computed in float32.
        return ops.gelu(x, approximate=False)
    if _USES_ERFC.get():
        return _in_float32(lambda x: ops.gelu(x, approximate=False), x)
    return _in_float32(lambda x: (ops.erf(x * math.sqrt(0.5)) + 1) * 0.5 * x, x)


def gelu_tanh(x: Tensor) -> Tensor:
    """Computes GELU in its tanh form (`gelu_new`), as BERT's code does."""
    if own_gradients.are_in_use():
        return own_gradients.gelu_tanh(x)
    return _in_float32(lambda x: ops.gelu(x, approximate=True), x)


@functools.cache
def gated(activation: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Returns the function `[a, b] -> activation(a) * b`.

    `a` and `b` are the halves of the last axis. With GELU, this is GeGLU
    (Shazeer 2020, arXiv:2002.05202).
    """

    def function(x: Tensor) -> Tensor:
        activated, gate = ops.split(x, 2, axis=-1)
        return activation(activated) * gate

    return function


def _in_float32(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Computes a function in float32 if `x` is in half precision.

    The result has the type of `x`. In its lower tail, GELU with erf or tanh
    adds 1 to a number close to -1. In bfloat16, its values would be 25 % off at
    -2.8, and 0 below -3.1.
    """
    if keras.backend.standardize_dtype(x.dtype) not in HALF:
        return function(x)
    return ops.cast(function(ops.cast(x, "float32")), x.dtype)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": ops.relu,
    "silu": ops.silu,
    "tanh": ops.tanh,
    # PyTorch's slope, as in Pfeiffer's code; Keras's default is 0.2.
    "leaky_relu": lambda x: ops.leaky_relu(x, negative_slope=0.01),
    "linear": lambda x: x,
}
# The same names, for editors and type checkers.
Activation = typing.Literal[
    "gelu", "gelu_tanh", "relu", "silu", "tanh", "leaky_relu", "linear"
]


def get_activation(name: str) -> Callable[[Tensor], Tensor]:
    """Returns the activation called `name`.

    Raises:
        UserError: If no activation has that name. The message lists all names.
    """
    check_known("activation", name, ACTIVATIONS)
    return ACTIVATIONS[name]
