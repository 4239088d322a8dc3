"""Multi-head attention from projected queries, keys and values."""

from collections.abc import Callable
import math

import keras
from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.layers.stateless_seeds import StatelessSeeds
from tf_adapters.layers.stateless_seeds import dropout


def softmax(logits: Tensor) -> Tensor:
    """Computes the softmax over the last axis in float32.

    The result has the type of `logits`. A sum in bfloat16 would lose terms that
    are smaller than about 1/250 of the sum.
    """
    dtype = logits.dtype
    return ops.cast(ops.softmax(ops.cast(logits, "float32")), dtype)


class NoPositions:
    """Leaves attention unchanged, for encoders with position embeddings.

    An encoder that handles positions in attention gives each of its blocks a
    Keras layer instead. That layer also has a method `relate`, which takes the
    projected queries and keys and returns changed ones, with a bias that is
    added to the attention scores.
    """

    def relate(
        self,
        query: Tensor,
        key: Tensor,
        project: Callable[[str, Tensor], Tensor],
        drop: Callable[[Tensor], Tensor],
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Returns `query` and `key` unchanged, and `None` as the bias.

        Other classes return a changed query and key, and a bias.

        Args:
            query: `(batch, queries, width)`. Projections of the first tokens.
            key: `(batch, tokens, width)`. Projections of all tokens.
            project: Function `project(name, x)` that applies the block's
                projection `"query"` or `"key"` to other vectors.
            drop: Function `drop(x)` that applies the encoder's dropout in
                training.

        Returns:
            `(query, key, bias)`. `bias` is added to the scores: a tensor that
            broadcasts to `(batch, heads, queries, tokens)`, or `None`.
        """
        return query, key, None


def by_head(x: Tensor, num_heads: int) -> Tensor:
    """Reshapes `(batch, tokens, d)` to `(batch, heads, tokens, d / heads)`."""
    head_width = x.shape[-1] // num_heads
    # Converters to ONNX can follow only one unknown dimension.
    x = ops.reshape(x, (ops.shape(x)[0], -1, num_heads, head_width))
    return ops.transpose(x, (0, 2, 1, 3))


def attention_weights(
    query: Tensor,
    key: Tensor,
    num_heads: int,
    padding_mask: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    """Returns `softmax(q k / sqrt(head width) + bias)`, per head.

    Args:
        query: `(batch, queries, width)`.
        key: `(batch, tokens, width)`.
        num_heads: Integer that divides the width.
        padding_mask: `(batch, tokens)`, 0 at tokens that are not attended to.
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
    # In float16, -1e9 is infinite, and 0 times infinity is NaN.
    is_half = keras.backend.standardize_dtype(scores.dtype) == "float16"
    least = ops.cast(-3e4 if is_half else -1e9, scores.dtype)
    return softmax(scores + blocked[:, None, None, :] * least)


def mix(weights: Tensor, value: Tensor) -> Tensor:
    """Returns the sum of the values, weighted by each head's attention.

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
    query: Tensor,
    key: Tensor,
    value: Tensor,
    num_heads: int,
    padding_mask: Tensor,
    dropout_rate: float = 0,
    seeds: StatelessSeeds | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """Computes multi-head attention.

    Args:
        query: `(batch, queries, width)`.
        key: `(batch, tokens, width)`.
        value: `(batch, tokens, width)`.
        num_heads: Integer that divides the width.
        padding_mask: `(batch, tokens)`, 0 at tokens that are not attended to.
        dropout_rate: Dropout rate of the attention weights in training.
            Defaults to 0.
        seeds: `StatelessSeeds` in training, else `None` (default).
        bias: Tensor that is added to the scores, or `None` (default); see
            `attention_weights`.

    Returns:
        Tensor of the shape of `query`.
    """
    weights = attention_weights(query, key, num_heads, padding_mask, bias)
    return mix(dropout(weights, dropout_rate, seeds), value)
