"""Gradients of GELU and layer normalization that keep few tensors in memory.

Automatic differentiation keeps every intermediate tensor of these functions
until the backward pass: three for each element of a feed-forward network. The
gradients here keep one, the slope of GELU or the normalized input of a norm.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import contextvars
import math
from typing import Any

from keras import ops

from tf_adapters.common.types import Tensor

_IN_USE = contextvars.ContextVar("uses_own_gradients", default=False)
# Of the tanh form of GELU (Hendrycks and Gimpel 2016, arXiv:1606.08415).
_SCALE, _CUBIC = math.sqrt(2 / math.pi), 0.044715


@contextlib.contextmanager
def own_gradients(in_use: bool | None = True) -> Iterator[None]:
    """Context manager in which GELU and layer norms have these gradients.

    Use it in training only: TensorFlow computes these functions faster in
    inference if it sees their operations.

    Args:
        in_use: Whether to use these gradients. Defaults to `True`. Otherwise,
            gradients are those of automatic differentiation.
    """
    token = _IN_USE.set(bool(in_use))
    try:
        yield
    finally:
        _IN_USE.reset(token)


def are_in_use() -> bool:
    """Returns whether the caller is in the context `own_gradients`."""
    return _IN_USE.get()


def gelu(x: Tensor) -> Tensor:
    """Computes the exact GELU; its gradient keeps one tensor in memory.

    Args:
        x: Float tensor. In half precision, the function and its slope are
            computed in float32. The slope is rounded to the type of `x`.
    """
    return ops.custom_gradient(_exact)(x)


def gelu_tanh(x: Tensor) -> Tensor:
    """Computes GELU in its tanh form; its gradient keeps one tensor in memory.

    Args:
        x: Float tensor. In half precision, the function and its slope are
            computed in float32. The slope is rounded to the type of `x`.
    """
    return ops.custom_gradient(_tanh_form)(x)


def _exact(x: Tensor) -> tuple[Tensor, Callable[..., Tensor]]:
    wide = ops.cast(x, "float32")
    scaled = wide * math.sqrt(0.5)
    below = 0.5 * ops.erf(scaled) + 0.5
    # The slope is the probability of less than x, plus x times the density.
    density = ops.exp(-0.5 * math.log(math.pi) - ops.square(scaled))
    return _with_slope(x, wide * below, below + scaled * density)


def _tanh_form(x: Tensor) -> tuple[Tensor, Callable[..., Tensor]]:
    wide = ops.cast(x, "float32")
    square = ops.square(wide)
    below = 0.5 * ops.tanh(wide * (_SCALE + _SCALE * _CUBIC * square)) + 0.5
    density = (2 * _SCALE + 6 * _SCALE * _CUBIC * square) * (
        below * (1 - below)
    )
    return _with_slope(x, wide * below, below + wide * density)


def _with_slope(
    x: Tensor, value: Tensor, slope: Tensor
) -> tuple[Tensor, Callable[..., Tensor]]:
    """Returns the value of a function in the type of `x`, and its gradient."""
    slope = ops.cast(slope, x.dtype)

    def grad(*args: Tensor, upstream: Tensor = None) -> Tensor:
        return (args[-1] if upstream is None else upstream) * slope

    return ops.cast(value, x.dtype), grad


def layer_norm(
    x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float
) -> Tensor:
    """Computes a layer norm; its gradient keeps only the normalized input.

    Args:
        x: Float tensor of shape `(..., d)`.
        gamma: Float32 scale of shape `(d,)`.
        beta: Float32 offset of shape `(d,)`.
        epsilon: Positive float that is added to the variance.
    """

    def norm(
        x: Tensor, gamma: Tensor, beta: Tensor
    ) -> tuple[Tensor, Callable[..., Any]]:
        wide = ops.cast(x, "float32")
        centered = wide - ops.mean(wide, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
        factor = ops.rsqrt(variance + epsilon)
        normalized = centered * factor

        def grad(*args: Tensor, upstream: Tensor = None) -> tuple[Tensor, ...]:
            upstream = args[-1] if upstream is None else upstream
            wide = ops.cast(upstream, "float32")
            of_all = tuple(range(len(wide.shape) - 1))
            scaled = wide * gamma
            along = ops.mean(scaled * normalized, axis=-1, keepdims=True)
            mean = ops.mean(scaled, axis=-1, keepdims=True)
            inner = factor * (scaled - mean - normalized * along)
            return (
                ops.cast(inner, upstream.dtype),
                ops.sum(wide * normalized, axis=of_all),
                ops.sum(wide, axis=of_all),
            )

        return ops.cast(normalized * gamma + beta, x.dtype), grad

    return ops.custom_gradient(norm)(x, gamma, beta)
