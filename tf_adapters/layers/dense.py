"""A fast linear layer for token vectors, as a function."""

from keras import ops

from tf_adapters.common.types import Tensor


def dense(
    x: Tensor, kernel: Tensor, bias: Tensor = None, activation=None
) -> Tensor:
    """Computes `activation(x kernel + bias)` over the last axis.

    The tokens are flattened first, because TensorFlow multiplies two matrices
    twice as fast as a rank-3 and a rank-2 tensor on a CPU. They are reshaped
    only after the activation, because TensorFlow fuses product, bias and
    activation into one kernel if they follow each other directly.

    Args:
        x: Float tensor of shape `(..., d)`.
        kernel: Weights of shape `(d, m)`, which are cast to the type of `x`.
        bias: Weights of shape `(m,)`, or `None` (default).
        activation: Function of `(tokens, m)`, or `None` (default). Gated ones
            return fewer channels.

    Returns:
        Float tensor of shape `(..., m)`.
    """
    flat = ops.reshape(x, (-1, kernel.shape[0]))
    flat = ops.matmul(flat, ops.cast(kernel, x.dtype))
    if bias is not None:
        flat = ops.add(flat, ops.cast(bias, x.dtype))
    if activation is not None:
        flat = activation(flat)
    return ops.reshape(flat, (*ops.shape(x)[:-1], flat.shape[-1]))
