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
    drops = dropout_rate > 0 and seeds is not None
    if bias is None and not drops and has_fused_kernel(query, key):
        return fused_attention(query, key, value, num_heads, padding_mask)
    weights = attention_weights(query, key, num_heads, padding_mask, bias)
    return mix(dropout(weights, dropout_rate, seeds), value)


def has_fused_kernel(query: Tensor, key: Tensor) -> bool:
    """Returns whether Keras may compute attention by one kernel of a GPU.

    Such a kernel ("flash attention") never stores the attention weights. Keras
    has one for JAX, in half precision. Its gradient needs even lengths.
    `keras.config.disable_flash_attention()` turns it off. The kernel for TPUs
    is not used: Keras gives it the padding of the first text for all texts.

    Args:
        query: `(batch, queries, width)`.
        key: `(batch, tokens, width)`.
    """
    if keras.config.is_flash_attention_enabled() is False:
        return False
    if keras.backend.backend() != "jax" or not _is_on_gpu():
        return False
    lengths = query.shape[1], key.shape[1]
    dtype = keras.backend.standardize_dtype(query.dtype)
    is_even = all(length and length % 2 == 0 for length in lengths)
    return is_even and dtype in ("bfloat16", "float16")


def _is_on_gpu() -> bool:
    """Returns whether Keras's first device is a GPU."""
    return keras.distribution.list_devices()[0].startswith("gpu")


def fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    num_heads: int,
    padding_mask: Tensor,
) -> Tensor:
    """Computes `attention` by Keras's operation for it, without dropout.

    Keras uses a kernel that never stores the attention weights, if it has one
    for the backend, the device, and the inputs. See `attention` for the
    arguments.
    """

    def split(x: Tensor) -> Tensor:
        shape = *ops.shape(x)[:2], num_heads, x.shape[-1] // num_heads
        return ops.reshape(x, shape)

    batch, queries = ops.shape(query)[:2]
    mask = ops.cast(padding_mask, "bool")[:, None, None, :]
    # The kernel takes no mask that is broadcast over the queries.
    mask = ops.broadcast_to(mask, (batch, 1, queries, ops.shape(key)[1]))
    mixed = ops.dot_product_attention(
        split(query), split(key), split(value), mask=mask
    )
    return ops.reshape(mixed, (batch, queries, value.shape[-1]))
