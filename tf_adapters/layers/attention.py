"""Attention with several heads, from projected queries, keys and values."""

import math

import keras
from keras import ops

from tf_adapters.layers.stateless_seeds import dropout


def softmax(logits):
    """Returns the softmax over the last axis, computed in float32.

    In bfloat16 a sum of a hundred weights would lose those below a 250th of it.
    """
    dtype = logits.dtype
    return ops.cast(ops.softmax(ops.cast(logits, "float32")), dtype)


def attention(
    query, key, value, num_heads, padding_mask, dropout_rate=0, seeds=None
):
    """Returns the values mixed by `softmax(q k / sqrt(head width))`, per head.

    Args:
        query: `(batch, queries, width)`.
        key: `(batch, tokens, width)`.
        value: Of the shape of `key`.
        num_heads: Integer that divides the width.
        padding_mask: `(batch, tokens)`, 0 where a token is not attended to.
        dropout_rate: Dropout rate of the weights in training.
        seeds: `StatelessSeeds` in training, else `None`.

    Returns:
        Tensor of the shape of `query`.
    """
    head_width = query.shape[-1] // num_heads

    def by_head(x):
        x = ops.reshape(x, (*ops.shape(x)[:-1], num_heads, head_width))
        return ops.transpose(x, (0, 2, 1, 3))

    heads = by_head(query) * ops.cast(1 / math.sqrt(head_width), query.dtype)
    scores = ops.matmul(heads, ops.transpose(by_head(key), (0, 1, 3, 2)))
    blocked = 1 - ops.cast(padding_mask, scores.dtype)
    # Where float16 computes, -1e9 is infinite, and nothing times it is NaN.
    is_half = keras.backend.standardize_dtype(scores.dtype) == "float16"
    least = ops.cast(-3e4 if is_half else -1e9, scores.dtype)
    scores = scores + blocked[:, None, None, :] * least
    weights = dropout(softmax(scores), dropout_rate, seeds)
    mixed = ops.matmul(weights, by_head(value))
    mixed = ops.transpose(mixed, (0, 2, 1, 3))
    return ops.reshape(mixed, ops.shape(query))
