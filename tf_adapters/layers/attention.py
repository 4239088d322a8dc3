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


class NoPositions:
    """How positions enter attention, in an encoder whose embeddings hold them.

    An encoder that has them in attention gives a Keras layer with this method
    to each of its blocks.
    """

    def relate(self, query, key, project, drop):
        """Returns query, key and bias as the scores of attention read them.

        Args:
            query: `(batch, queries, width)`, the projected first tokens.
            key: `(batch, tokens, width)`, all projected tokens.
            project: Function `project(name, x)` that computes the block's
                projection `"query"` or `"key"` of other vectors.
            drop: Function `drop(x)` that applies the encoder's dropout in
                training.

        Returns:
            `(query, key, bias)`. `bias` is added to the scores: a tensor that
            broadcasts to `(batch, heads, queries, tokens)`, or `None`.
        """
        return query, key, None


def by_head(x, num_heads):
    """Returns `(batch, heads, tokens, head width)` of `(batch, tokens, d)`."""
    head_width = x.shape[-1] // num_heads
    x = ops.reshape(x, (*ops.shape(x)[:-1], num_heads, head_width))
    return ops.transpose(x, (0, 2, 1, 3))


def attention_weights(query, key, num_heads, padding_mask, bias=None):
    """Returns `softmax(q k / sqrt(head width) + bias)`, per head.

    Args:
        query: `(batch, queries, width)`.
        key: `(batch, tokens, width)`.
        num_heads: Integer that divides the width.
        padding_mask: `(batch, tokens)`, 0 where a token is not attended to.
        bias: Tensor that broadcasts to the result, or `None` (default).

    Returns:
        Tensor of shape `(batch, heads, queries, tokens)`.
    """
    head_width = query.shape[-1] // num_heads
    scale = ops.cast(1 / math.sqrt(head_width), query.dtype)
    keys = ops.transpose(by_head(key, num_heads), (0, 1, 3, 2))
    scores = ops.matmul(by_head(query, num_heads) * scale, keys)
    if bias is not None:
        scores = scores + ops.cast(bias, scores.dtype)
    blocked = 1 - ops.cast(padding_mask, scores.dtype)
    # Where float16 computes, -1e9 is infinite, and nothing times it is NaN.
    is_half = keras.backend.standardize_dtype(scores.dtype) == "float16"
    least = ops.cast(-3e4 if is_half else -1e9, scores.dtype)
    return softmax(scores + blocked[:, None, None, :] * least)


def mix(weights, value):
    """Returns values mixed by weights, per head.

    Args:
        weights: `(batch, heads, queries, tokens)`.
        value: `(batch, tokens, width)`.

    Returns:
        Tensor of shape `(batch, queries, width)`.
    """
    mixed = ops.matmul(weights, by_head(value, weights.shape[1]))
    mixed = ops.transpose(mixed, (0, 2, 1, 3))
    return ops.reshape(mixed, (*ops.shape(mixed)[:2], value.shape[-1]))


def attention(
    query,
    key,
    value,
    num_heads,
    padding_mask,
    dropout_rate=0,
    seeds=None,
    bias=None,
):
    """Returns the values mixed by `attention_weights`, per head.

    Args:
        query: `(batch, queries, width)`.
        key: `(batch, tokens, width)`.
        value: Of the shape of `key`.
        num_heads: Integer that divides the width.
        padding_mask: `(batch, tokens)`, 0 where a token is not attended to.
        dropout_rate: Dropout rate of the weights in training.
        seeds: `StatelessSeeds` in training, else `None`.
        bias: Added to the scores; see `attention_weights`.

    Returns:
        Tensor of the shape of `query`.
    """
    weights = attention_weights(query, key, num_heads, padding_mask, bias)
    return mix(dropout(weights, dropout_rate, seeds), value)
