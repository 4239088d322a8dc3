"""ModernBERT's block, and the rotary positions in its attention."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops
import numpy as np

from tf_adapters.common.types import Tensor
from tf_adapters.layers.activations import gated
from tf_adapters.layers.activations import gelu
from tf_adapters.layers.attention import attention_weights
from tf_adapters.layers.attention import mix


@keras.saving.register_keras_serializable("tf_adapters")
class RotaryPositions(keras.layers.Layer):
    """Rotates queries and keys by angles that grow with the position.

    Attention scores then depend on the distance of two tokens (Su et al. 2021,
    arXiv:2104.09864). The layer has no weights.

    Args:
        num_heads: Integer.
        theta: Number. The slowest angles grow by about `1 / theta` per token.
        reach: Integer. Maximum distance of two tokens that attend to each
            other, or `None` (default) for any distance.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self,
        num_heads: int,
        theta: float,
        reach: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.theta = theta
        self.reach = reach
        self.built = True

    def relate(
        self,
        query: Tensor,
        key: Tensor,
        project: Callable[[str, Tensor], Tensor] | None,
        drop: Callable[[Tensor], Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Returns the rotated query and key, and a bias if `reach` is set.

        See `tf_adapters.layers.attention.NoPositions`.
        """
        # There may be fewer queries than keys: those of the first tokens.
        queries, keys = (ops.arange(ops.shape(x)[1]) for x in (query, key))
        bias = None
        if self.reach is not None:
            distance = ops.abs(keys[None, :] - queries[:, None])
            is_far = ops.cast(distance > self.reach, "float32")
            # Even when the padding mask is added, this is finite in float16.
            bias = -3e4 * is_far[None, None]
        return self._rotated(query, queries), self._rotated(key, keys), bias

    def _rotated(self, x: Tensor, positions: Tensor) -> Tensor:
        """Rotates each head's vectors by the angles of their positions.

        Args:
            x: `(batch, tokens, width)`.
            positions: `(tokens,)` integers.

        Returns:
            Tensor of the shape and type of `x`, computed in float32.
        """
        tokens, width = ops.shape(x)[1], x.shape[-1]
        head_width = width // self.num_heads
        # Computed in float32, as in PyTorch. Otherwise, outputs would differ at
        # large positions.
        powers = np.arange(0, head_width, 2, dtype="float32") / head_width
        frequencies = 1 / np.float32(self.theta) ** powers
        angles = ops.cast(positions, "float32")[:, None] * frequencies
        cosine, sine = (f(angles)[None, :, None] for f in (ops.cos, ops.sin))
        halves = ops.reshape(
            ops.cast(x, "float32"),
            (-1, tokens, self.num_heads, 2, head_width // 2),
        )
        first, second = halves[..., 0, :], halves[..., 1, :]
        rotated = ops.concatenate(
            [
                first * cosine - second * sine,
                second * cosine + first * sine,
            ],
            axis=-1,
        )
        return ops.cast(ops.reshape(rotated, (-1, tokens, width)), x.dtype)

    def get_config(self) -> dict[str, Any]:
        own = {
            "num_heads": self.num_heads,
            "theta": self.theta,
            "reach": self.reach,
        }
        return {**super().get_config(), **own}


@keras.saving.register_keras_serializable("tf_adapters")
class ModernBertEncoder(keras.layers.Layer):
    """One pre-norm block: attention, then a gated feed-forward network.

    Args:
        hidden_dim: Integer. Width of the token vectors.
        intermediate_dim: Integer. Width of the feed-forward network.
        num_heads: Integer that divides `hidden_dim`.
        theta: Number. See `RotaryPositions`.
        reach: Integer or `None`. See `RotaryPositions`.
        has_attention_norm: Whether there is a norm before attention. The first
            block has none, because the embeddings have a norm.
        dropout: Float. Dropout rate of the attention weights and of the
            attention output.
        epsilon: Float. Epsilon of the norms.
        **kwargs: See `keras.layers.Layer`.

    Call arguments:
        inputs: `(batch, tokens, width)`.
        padding_mask: `(batch, tokens)`, 0 at padding.
    """

    def __init__(
        self,
        hidden_dim: int,
        intermediate_dim: int,
        num_heads: int,
        theta: float,
        reach: int | None,
        has_attention_norm: bool,
        dropout: float,
        epsilon: float,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.positions = RotaryPositions(
            num_heads, theta, reach, dtype=self.dtype_policy, name="positions"
        )
        self.attention_norm = None
        if has_attention_norm:
            self.attention_norm = self._norm("attention_norm", epsilon)
        self.query = self._dense("query", hidden_dim)
        self.key = self._dense("key", hidden_dim)
        self.value = self._dense("value", hidden_dim)
        self.attention_output = self._dense("attention_output", hidden_dim)
        self.dropout = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )
        self.feedforward_norm = self._norm("feedforward_norm", epsilon)
        self.feedforward_intermediate_dense = self._dense(
            "feedforward_intermediate_dense", 2 * intermediate_dim
        )
        self.feedforward_output_dense = self._dense(
            "feedforward_output_dense", hidden_dim
        )

    def _dense(self, name: str, units: int) -> keras.layers.Dense:
        initializer: Any = keras.initializers.TruncatedNormal(stddev=0.02)
        return keras.layers.Dense(
            units,
            use_bias=False,
            kernel_initializer=initializer,
            dtype=self.dtype_policy,
            name=name,
        )

    def _norm(
        self, name: str, epsilon: float
    ) -> keras.layers.LayerNormalization:
        return keras.layers.LayerNormalization(
            epsilon=epsilon, center=False, dtype=self.dtype_policy, name=name
        )

    def build(
        self, inputs_shape: tuple[int | None, ...], **other_shapes: Any
    ) -> None:
        narrow = (None, None, self.hidden_dim)
        wide = (None, None, self.intermediate_dim)
        for layer in (self.query, self.key, self.value, self.attention_output):
            layer.build(narrow)
        if self.attention_norm is not None:
            self.attention_norm.build(narrow)
        self.feedforward_norm.build(narrow)
        self.feedforward_intermediate_dense.build(narrow)
        self.feedforward_output_dense.build(wide)

    def call(
        self, inputs: Tensor, padding_mask: Tensor, training: bool | None = None
    ) -> Tensor:
        x = inputs
        if self.attention_norm is not None:
            x = self.attention_norm(x)
        query, key, bias = self.positions.relate(
            self.query(x), self.key(x), None, None
        )
        weights = attention_weights(
            query, key, self.num_heads, padding_mask, bias
        )
        weights = self.dropout(weights, training=training)
        attended = self.attention_output(mix(weights, self.value(x)))
        x = inputs + self.dropout(attended, training=training)
        y = self.feedforward_intermediate_dense(self.feedforward_norm(x))
        return x + self.feedforward_output_dense(gated(gelu)(y))

    def compute_output_shape(
        self, inputs_shape: tuple[int | None, ...], **other_shapes: Any
    ) -> tuple[int | None, ...]:
        return inputs_shape
