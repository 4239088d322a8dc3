"""ModernBERT (Warner et al. 2024, arXiv:2412.13663), which KerasHub lacks.

Its blocks have their norms before attention and feed-forward network, rotary
positions, gated feed-forward networks and no biases. Two of three blocks are
local: their tokens attend only to nearby tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import keras
import keras_hub

from tf_adapters.encoders.architecture import Architecture
from tf_adapters.encoders.block_layers import BlockLayers
from tf_adapters.encoders.modernbert_layers import ModernBertEncoder

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.encoders.modernbert_layers import RotaryPositions


_EPSILON = 1e-5


@keras.saving.register_keras_serializable("tf_adapters")
class ModernBertBackbone(keras_hub.models.Backbone):
    """A ModernBERT encoder in the style of KerasHub.

    Args:
        vocabulary_size: Integer.
        num_layers: Integer. Number of blocks.
        num_heads: Integer that divides `hidden_dim`.
        hidden_dim: Integer. Width of the token vectors.
        intermediate_dim: Integer. Width of the feed-forward networks.
        dropout: Float. Dropout rate of the embeddings, the attention output and
            the attention weights. Defaults to 0, as in the published encoders.
        max_sequence_length: Integer. Maximum number of tokens. Defaults to
            8192.
        global_every: Integer. Block 0 and every `global_every`-th block after
            it are global. The others are local. Defaults to 3.
        local_attention: Integer. Width of the local window: in local blocks, a
            token attends to half as many tokens on each side. Defaults to 128.
        global_theta: Number. `theta` of `RotaryPositions` in global blocks.
            Defaults to 160,000.
        local_theta: Number. `theta` in local blocks. Defaults to 10,000.
        dtype: Keras dtype policy, or `None` (default) for Keras's own.
        **kwargs: See `keras_hub.models.Backbone`.

    Call arguments:
        inputs: Dict of integer tensors `token_ids` and `padding_mask`, both
            `(batch, tokens)`.

    Returns:
        `(batch, tokens, hidden_dim)`: the token vectors after the final norm.
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        dropout: float = 0.0,
        max_sequence_length: int = 8192,
        global_every: int = 3,
        local_attention: int = 128,
        global_theta: float = 160_000.0,
        local_theta: float = 10_000.0,
        dtype: keras.DTypePolicy | str | None = None,
        **kwargs: Any,
    ) -> None:
        def norm(name: str) -> keras.layers.LayerNormalization:
            return keras.layers.LayerNormalization(
                epsilon=_EPSILON, center=False, dtype=dtype, name=name
            )

        initializer: Any = keras.initializers.TruncatedNormal(stddev=0.02)
        self.token_embedding = keras.layers.Embedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=initializer,
            dtype=dtype,
            name="token_embedding",
        )
        self.embeddings_layer_norm = norm("embeddings_layer_norm")
        self.embeddings_dropout = keras.layers.Dropout(
            dropout, dtype=dtype, name="embeddings_dropout"
        )
        is_global = [i % global_every == 0 for i in range(num_layers)]
        self.transformer_layers = [
            ModernBertEncoder(
                hidden_dim,
                intermediate_dim,
                num_heads,
                global_theta if everywhere else local_theta,
                None if everywhere else local_attention // 2,
                has_attention_norm=i > 0,
                dropout=dropout,
                epsilon=_EPSILON,
                dtype=dtype,
                name=f"transformer_layer_{i}",
            )
            for i, everywhere in enumerate(is_global)
        ]
        self.final_norm = norm("final_norm")
        inputs = {
            name: keras.Input((None,), dtype="int32", name=name)
            for name in ("token_ids", "padding_mask")
        }
        x = self.token_embedding(inputs["token_ids"])
        x = self.embeddings_dropout(self.embeddings_layer_norm(x))
        for block in self.transformer_layers:
            x = block(x, padding_mask=inputs["padding_mask"])
        super().__init__(
            inputs=inputs, outputs=self.final_norm(x), dtype=dtype, **kwargs
        )
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.max_sequence_length = max_sequence_length
        self.global_every = global_every
        self.local_attention = local_attention
        self.global_theta = global_theta
        self.local_theta = local_theta

    def get_config(self) -> dict[str, Any]:
        names = (
            "vocabulary_size",
            "num_layers",
            "num_heads",
            "hidden_dim",
            "intermediate_dim",
            "dropout",
            "max_sequence_length",
            "global_every",
            "local_attention",
            "global_theta",
            "local_theta",
        )
        own = {name: getattr(self, name) for name in names}
        return {**super().get_config(), **own}


def _layers(block: ModernBertEncoder) -> BlockLayers:
    return BlockLayers(
        query=block.query,
        key=block.key,
        value=block.value,
        output=block.attention_output,
        ffn_up=block.feedforward_intermediate_dense,
        ffn_down=block.feedforward_output_dense,
        attention_norm=block.attention_norm,
        ffn_norm=block.feedforward_norm,
        num_heads=block.num_heads,
    )


def _positions(encoder: Encoder) -> list[RotaryPositions]:
    return [block.positions for block in encoder.backbone.transformer_layers]


ARCHITECTURE = Architecture(
    "gelu",
    _EPSILON,
    layers=_layers,
    positions=_positions,
    norms="pre",
    has_gate=True,
    final_norm="final_norm",
)
