"""Layer normalisation from given weights."""

from keras import ops


def layer_norm(x, gamma, beta, epsilon):
    """Returns `gamma (x - mean) / sqrt(variance + epsilon) + beta`.

    Statistics are taken over the last axis in float32, whatever the type of
    `x`: in bfloat16 the variance would keep two decimal digits.

    Args:
        x: Float tensor of shape `(..., d)`.
        gamma: Scale of shape `(d,)`, or one for each example, `(batch, 1, d)`.
        beta: Offset of the same shape.
        epsilon: Positive float, added to the variance.
    """
    dtype = x.dtype
    x = ops.cast(x, "float32")
    centred = x - ops.mean(x, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
    normalized = centred * ops.rsqrt(variance + epsilon)
    return ops.cast(
        normalized * ops.cast(gamma, "float32") + ops.cast(beta, "float32"),
        dtype,
    )
