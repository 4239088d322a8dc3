"""MPNet's block and its relative positions."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops
import keras_hub

from tf_adapters.common.types import Tensor
from tf_adapters.layers.attention import attention_weights
from tf_adapters.layers.attention import mix

NUM_BUCKETS = 32
# Distances up to 7 have a bucket each. Each further bucket starts at one of
# these distances, which grow by a factor of about sqrt(2). In transformers,
# models/mpnet/modeling_mpnet.py computes the same with logarithms.
_FIRST_DISTANCES = (8, 12, 16, 23, 32, 46, 64, 91)


@keras.saving.register_keras_serializable("tf_adapters")
class RelativePositionBias(keras.layers.Layer):
    """Computes a learned bias for attention scores from relative positions.

    Relative positions are grouped into buckets. Each head learns one number for
    each bucket.

    Args:
        num_heads: Integer.
        **kwargs: See `keras.layers.Layer`.

    Call arguments:
        inputs: `(batch, tokens, width)`; only the number of tokens is used.

    Returns:
        `(1, heads, tokens, tokens)`: the bias for each query (third axis) and
        key (fourth axis).
    """

    def __init__(self, num_heads: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.embeddings = self.add_weight(
            (NUM_BUCKETS, self.num_heads),
            keras.initializers.TruncatedNormal(stddev=0.02),
            name="embeddings",
        )

    def call(self, inputs: Tensor) -> Tensor:
        tokens = ops.arange(ops.shape(inputs)[1])
        bias = self._of_distances(tokens[None, :] - tokens[:, None])
        return ops.cast(bias, self.compute_dtype)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        return (1, self.num_heads, input_shape[1], input_shape[1])

    def relate(
        self,
        query: Tensor,
        key: Tensor,
        project: Callable[[str, Tensor], Tensor],
        drop: Callable[[Tensor], Tensor],
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the query and the key, which are unchanged, and the bias.

        See `tf_adapters.layers.attention.NoPositions`.
        """
        # There may be fewer queries than keys: those of the first tokens.
        queries, keys = (ops.arange(ops.shape(x)[1]) for x in (query, key))
        return query, key, self._of_distances(keys[None, :] - queries[:, None])

    def _of_distances(self, distances: Tensor) -> Tensor:
        """Returns biases `(1, heads, queries, keys)` for relative positions.

        Args:
            distances: `(queries, keys)` integers: the position of each key
                minus the position of each query.
        """
        far = ops.abs(distances)
        later = [ops.cast(far >= first, "int32") for first in _FIRST_DISTANCES]
        buckets = ops.minimum(ops.cast(far, "int32"), 7) + sum(later)
        is_behind = ops.cast(distances > 0, "int32")
        buckets = buckets + is_behind * (NUM_BUCKETS // 2)
        table = ops.convert_to_tensor(self.embeddings)
        bias = ops.take(table, buckets, axis=0)
        return ops.transpose(bias, (2, 0, 1))[None]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_heads": self.num_heads}


@keras.saving.register_keras_serializable("tf_adapters")
class MPNetEncoder(keras_hub.layers.TransformerEncoder):
    """A KerasHub `TransformerEncoder` that adds a bias to attention scores.

    Call arguments:
        inputs: `(batch, tokens, width)`.
        position_bias: `(1, heads, tokens, tokens)`.
        padding_mask: `(batch, tokens)`, 0 at padding.
    """

    def call(
        self,
        inputs: Tensor,
        position_bias: Tensor,
        padding_mask: Tensor,
        training: bool | None = None,
    ) -> Tensor:
        layer = self._self_attention_layer
        shape = ops.shape(inputs)
        query, key, value = (
            ops.reshape(project(inputs), shape)
            for project in (
                layer._query_dense,
                layer._key_dense,
                layer._value_dense,
            )
        )
        weights = attention_weights(
            query, key, self.num_heads, padding_mask, position_bias
        )
        weights = self._self_attention_dropout(weights, training=training)
        width = shape[-1] // self.num_heads
        mixed = ops.reshape(
            mix(weights, value), (*shape[:2], self.num_heads, width)
        )
        x = layer._output_dense(mixed)
        x = self._self_attention_dropout(x, training=training)
        residual = self._self_attention_layer_norm(x + inputs)
        x = self._feedforward_intermediate_dense(residual)
        x = self._feedforward_output_dense(x)
        x = self._feedforward_dropout(x, training=training)
        return self._feedforward_layer_norm(x + residual)

    def compute_output_shape(
        self, inputs_shape: tuple[int | None, ...], **other_shapes: Any
    ) -> tuple[int | None, ...]:
        return inputs_shape
