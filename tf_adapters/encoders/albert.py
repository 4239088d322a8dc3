"""ALBERT (Lan et al. 2019, arXiv:1909.11942): blocks that share their weights.

Blocks with the same weights are one layer, which is called several times. Each
call has its own slots. Adapter methods therefore treat each call as a separate
block, whose index is its depth. The backbone is KerasHub's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import keras_hub

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.encoders.architecture import Architecture
from tf_adapters.encoders.huggingface_family import BERT_ARGUMENTS
from tf_adapters.encoders.huggingface_family import Family
from tf_adapters.encoders.huggingface_weights import blocks_of

if TYPE_CHECKING:
    from pathlib import Path

    import keras


AlbertBackbone = keras_hub.models.AlbertBackbone


def _blocks(backbone: AlbertBackbone) -> list[keras.layers.Layer]:
    """Returns a list with the block at each depth.

    Depths that share weights have the same layer, so the list contains a layer
    several times.
    """
    if backbone.num_inner_repetitions != 1:
        raise UserError(
            "Expected an ALBERT with num_inner_repetitions=1, as all published "
            f"ones have. Received: {backbone.num_inner_repetitions}"
        )
    times = backbone.num_layers // backbone.num_groups
    groups = [block for (block,) in backbone.transformer_layers]
    return [block for block in groups for _ in range(times)]


ARCHITECTURE = Architecture("gelu_tanh", 1e-12, has_pooler=True, blocks=_blocks)


def _check(config: dict[str, Any], path: Path) -> None:
    inner = config.get("inner_group_num", 1)
    if inner != 1:
        raise UserError(
            f"`{path}`: expected inner_group_num=1, as all published ALBERTs "
            f"have. Received: {shown(inner)}"
        )
    layers = config.get("num_hidden_layers")
    groups = config.get("num_hidden_groups")
    if not isinstance(layers, int) or not isinstance(groups, int):
        return
    if groups > 0 and layers % groups:
        raise UserError(
            f"`{path}`: `num_hidden_layers` must be a multiple of "
            f"`num_hidden_groups`={groups}. Received: {layers}"
        )


_BLOCK = {
    "self_attention_layer/query": "attention.query",
    "self_attention_layer/key": "attention.key",
    "self_attention_layer/value": "attention.value",
    "self_attention_layer/attention_output": "attention.dense",
    "self_attention_layer_norm": "attention.LayerNorm",
    "feedforward_intermediate_dense": "ffn",
    "feedforward_output_dense": "ffn_output",
    "feedforward_layer_norm": "full_layer_layer_norm",
}
_GROUP = "encoder.albert_layer_groups.{}.albert_layers.{}"
HUGGINGFACE = Family(
    AlbertBackbone,
    {
        "token_embedding": "embeddings.word_embeddings",
        "position_embedding": "embeddings.position_embeddings",
        "segment_embedding": "embeddings.token_type_embeddings",
        "embeddings_layer_norm": "embeddings.LayerNorm",
        "embedding_projection": "encoder.embedding_hidden_mapping_in",
        "pooled_dense": "pooler",
        **blocks_of(_BLOCK, _GROUP, "group_{}_inner_layer_{}"),
    },
    "albert.",
    arguments={
        **BERT_ARGUMENTS,
        "embedding_dim": "embedding_size",
        "num_groups": "num_hidden_groups",
    },
    options={
        "activation": ("hidden_act", "gelu_new"),
        "layer_norm_epsilon": ("layer_norm_eps", 1e-12),
        "hidden_dropout": ("hidden_dropout_prob", 0),
        "attention_dropout": ("attention_probs_dropout_prob", 0),
        # Fixed in transformers/models/albert/modeling_albert.py: there is no
        # dropout after the feed-forward network.
        "ffn_output_dropout": (None, 0.0),
        "num_segments": ("type_vocab_size", 2),
    },
    check=_check,
)
