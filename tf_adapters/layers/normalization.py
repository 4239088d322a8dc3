"""Layer normalization with given weights, as a function."""

from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.layers import own_gradients


def layer_norm(
    x: Tensor, gamma: Tensor, beta: Tensor | None, epsilon: float
) -> Tensor:
    """Computes `gamma (x - mean) / sqrt(variance + epsilon) + beta`.

    Mean and variance are over the last axis. They are computed in float32 for
    any type of `x`, because a bfloat16 variance has only two decimal digits.

    Args:
        x: Float tensor of shape `(..., d)`.
        gamma: Scale of shape `(d,)`, or scales of shape `(batch, 1, d)`, one
            for each example.
        beta: Offset of the same shape as `gamma`, or `None` for no offset.
        epsilon: Positive float that is added to the variance.

    Returns:
        Tensor of the shape and type of `x`.
    """
    if own_gradients.are_in_use() and beta is not None:
        weights = ops.cast(gamma, "float32"), ops.cast(beta, "float32")
        # Weights of an example each are a bank's, which does not train.
        if len(gamma.shape) == 1:
            return own_gradients.layer_norm(x, *weights, epsilon)
    dtype = x.dtype
    x = ops.cast(x, "float32")
    centered = x - ops.mean(x, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
    normalized = centered * ops.rsqrt(variance + epsilon)
    scaled = normalized * ops.cast(gamma, "float32")
    if beta is not None:
        scaled = scaled + ops.cast(beta, "float32")
    return ops.cast(scaled, dtype)
