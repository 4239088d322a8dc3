"""Layer normalization with given weights, as a function."""

from keras import ops

from tf_adapters.common.types import Tensor


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
    dtype = x.dtype
    x = ops.cast(x, "float32")
    centered = x - ops.mean(x, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
    normalized = centered * ops.rsqrt(variance + epsilon)
    scaled = normalized * ops.cast(gamma, "float32")
    if beta is not None:
        scaled = scaled + ops.cast(beta, "float32")
    return ops.cast(scaled, dtype)
