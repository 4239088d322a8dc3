"""MPNet (Song et al. 2020, arXiv:2004.09297), which KerasHub does not have.

It has BERT's blocks, RoBERTa's embeddings, and a single table of relative
positions that is added to the attention scores of every block, as in T5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import keras
import keras_hub

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.encoders.architecture import Architecture
from tf_adapters.encoders.huggingface_family import OPTIONS_WITHOUT_SEGMENTS
from tf_adapters.encoders.huggingface_family import Family
from tf_adapters.encoders.huggingface_weights import blocks_of
from tf_adapters.encoders.mpnet_layers import NUM_BUCKETS
from tf_adapters.encoders.mpnet_layers import MPNetEncoder
from tf_adapters.encoders.mpnet_layers import RelativePositionBias

if TYPE_CHECKING:
    from pathlib import Path

    from tf_adapters.encoders.encoder import Encoder


_EPSILON = 1e-5


@keras.saving.register_keras_serializable("tf_adapters")
class MPNetBackbone(keras_hub.models.Backbone):
    """An MPNet encoder in the style of KerasHub.

    Args:
        vocabulary_size: Integer.
        num_layers: Integer. Number of blocks.
        num_heads: Integer that divides `hidden_dim`.
        hidden_dim: Integer. Width of the token vectors.
        intermediate_dim: Integer. Width of the feed-forward networks.
        dropout: Float. Dropout rate. Defaults to 0.1.
        max_sequence_length: Integer. Maximum number of tokens. Defaults to 512.
        dtype: Keras dtype policy, or `None` (default) for Keras's own.
        **kwargs: See `keras_hub.models.Backbone`.

    Call arguments:
        inputs: Dict of integer tensors `token_ids` and `padding_mask`, both
            `(batch, tokens)`.

    Returns:
        Dict with `sequence_output` `(batch, tokens, hidden_dim)` and
        `pooled_output` `(batch, hidden_dim)`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        dropout: float = 0.1,
        max_sequence_length: int = 512,
        dtype: keras.DTypePolicy | str | None = None,
        **kwargs: Any,
    ) -> None:
        initializer: dict[str, Any] = {
            "kernel_initializer": keras.initializers.TruncatedNormal(
                stddev=0.02
            )
        }
        self.embeddings = keras_hub.layers.TokenAndPositionEmbedding(
            vocabulary_size=vocabulary_size,
            sequence_length=max_sequence_length,
            embedding_dim=hidden_dim,
            dtype=dtype,
            name="embeddings",
        )
        self.token_embedding = self.embeddings.token_embedding
        self.embeddings_layer_norm = keras.layers.LayerNormalization(
            epsilon=_EPSILON, dtype=dtype, name="embeddings_layer_norm"
        )
        self.embeddings_dropout = keras.layers.Dropout(
            dropout, dtype=dtype, name="embeddings_dropout"
        )
        self.relative_position_bias = RelativePositionBias(
            num_heads, dtype=dtype, name="relative_position_bias"
        )
        self.transformer_layers = [
            MPNetEncoder(
                intermediate_dim,
                num_heads,
                dropout,
                activation="gelu",
                layer_norm_epsilon=_EPSILON,
                dtype=dtype,
                name=f"transformer_layer_{i}",
                **initializer,
            )
            for i in range(num_layers)
        ]
        self.pooled_dense = keras.layers.Dense(
            hidden_dim,
            activation="tanh",
            dtype=dtype,
            name="pooled_dense",
            **initializer,
        )
        inputs = {
            name: keras.Input((None,), dtype="int32", name=name)
            for name in ("token_ids", "padding_mask")
        }
        x = self.embeddings(inputs["token_ids"])
        x = self.embeddings_dropout(self.embeddings_layer_norm(x))
        bias = self.relative_position_bias(x)
        for block in self.transformer_layers:
            x = block(x, bias, padding_mask=inputs["padding_mask"])
        outputs = {
            "sequence_output": x,
            "pooled_output": self.pooled_dense(x[:, 0, :]),
        }
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.max_sequence_length = max_sequence_length

    def get_config(self) -> dict[str, Any]:
        names = (
            "vocabulary_size",
            "num_layers",
            "num_heads",
            "hidden_dim",
            "intermediate_dim",
            "dropout",
            "max_sequence_length",
        )
        own = {name: getattr(self, name) for name in names}
        return {**super().get_config(), **own}


def _positions(encoder: Encoder) -> list[RelativePositionBias]:
    backbone = encoder.backbone
    return [backbone.relative_position_bias] * backbone.num_layers


ARCHITECTURE = Architecture(
    "gelu",
    _EPSILON,
    has_pooler=True,
    masked_lm_activation="gelu",
    counts_positions=True,
    positions=_positions,
)


def _check(config: dict[str, Any], path: Path) -> None:
    buckets = config.get("relative_attention_num_buckets", NUM_BUCKETS)
    if buckets != NUM_BUCKETS:
        raise UserError(
            f"`{path}`: expected relative_attention_num_buckets={NUM_BUCKETS}, "
            "the only number that MPNet's own code computes. Received: "
            f"{shown(buckets)}"
        )


HUGGINGFACE = Family(
    MPNetBackbone,
    {
        "embeddings/token_embedding": "embeddings.word_embeddings",
        "embeddings/position_embedding": "embeddings.position_embeddings",
        "embeddings_layer_norm": "embeddings.LayerNorm",
        "relative_position_bias": "encoder.relative_attention_bias",
        "pooled_dense": "pooler.dense",
        **blocks_of(
            {
                "self_attention_layer/query": "attention.attn.q",
                "self_attention_layer/key": "attention.attn.k",
                "self_attention_layer/value": "attention.attn.v",
                "self_attention_layer/attention_output": "attention.attn.o",
                "self_attention_layer_norm": "attention.LayerNorm",
                "feedforward_intermediate_dense": "intermediate.dense",
                "feedforward_output_dense": "output.dense",
                "feedforward_layer_norm": "output.LayerNorm",
            },
            "encoder.layer.{}",
        ),
    },
    "mpnet.",
    options=OPTIONS_WITHOUT_SEGMENTS,
    # In the original, `padding_idx` is always 1, and the config is ignored.
    first_position=lambda config, path: 2,
    check=_check,
)
