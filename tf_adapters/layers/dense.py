"""A fast linear layer for token vectors, as a function."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import contextvars

from keras import ops

from tf_adapters.common.types import Tensor

_KEEPS_TOKENS = contextvars.ContextVar("keeps_tokens", default=False)


@contextlib.contextmanager
def without_flattening() -> Iterator[None]:
    """Context manager in which `dense` does not flatten the tokens.

    Converters of graphs to other formats cannot follow the reshaping of a
    tensor whose batch size and length are unknown.
    """
    token = _KEEPS_TOKENS.set(True)
    try:
        yield
    finally:
        _KEEPS_TOKENS.reset(token)


def dense(
    x: Tensor,
    kernel: Tensor,
    bias: Tensor | None = None,
    activation: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Computes `activation(x kernel + bias)` over the last axis.

    The tokens are flattened first, because TensorFlow multiplies two matrices
    twice as fast as a rank-3 and a rank-2 tensor on a CPU. They are reshaped
    only after the activation, because TensorFlow fuses the multiplication, the
    bias and the activation into one operation if they follow each other
    directly.

    Args:
        x: Float tensor of shape `(..., d)`.
        kernel: Weights of shape `(d, m)`, which are cast to the type of `x`.
        bias: Weights of shape `(m,)`, or `None` (default).
        activation: Function of `(..., m)`, or `None` (default). Gated
            activations return fewer channels.

    Returns:
        Float tensor of shape `(..., m)`.
    """
    if _KEEPS_TOKENS.get():
        return _product(x, kernel, bias, activation)
    tokens = ops.reshape(x, (-1, kernel.shape[0]))
    flat = _product(tokens, kernel, bias, activation)
    return ops.reshape(flat, (*ops.shape(x)[:-1], flat.shape[-1]))


def _product(
    x: Tensor,
    kernel: Tensor,
    bias: Tensor | None,
    activation: Callable[[Tensor], Tensor] | None,
) -> Tensor:
    x = ops.matmul(x, ops.cast(kernel, x.dtype))
    if bias is not None:
        x = ops.add(x, ops.cast(bias, x.dtype))
    return x if activation is None else activation(x)
