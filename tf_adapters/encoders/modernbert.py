"""ModernBERT (Warner et al. 2024, arXiv:2412.13663), which KerasHub lacks.

Its blocks have their norms before attention and feed-forward network, rotary
positions, gated feed-forward networks and no biases. Two of three blocks are
local: their tokens attend only to near ones.
"""

import keras
import keras_hub
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.encoders import config_checks
from tf_adapters.encoders.architecture import Architecture
from tf_adapters.encoders.block_layers import BlockLayers
from tf_adapters.encoders.huggingface_checkpoint import HuggingFaceCheckpoint
from tf_adapters.encoders.huggingface_family import BERT_ARGUMENTS
from tf_adapters.encoders.huggingface_family import Family
from tf_adapters.encoders.huggingface_weights import blocks_of
from tf_adapters.encoders.modernbert_layers import ModernBertEncoder

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
        dropout: Float. Rate after the embeddings, after attention and of its
            weights. Defaults to 0, as in the published encoders.
        max_sequence_length: Integer. Maximum number of tokens. Defaults to
            8192.
        global_every: Integer. Blocks whose number is a multiple of it are
            global, the others are local. Defaults to 3.
        local_attention: Integer. Width of the local window: tokens of local
            blocks attend to half of it on each side. Defaults to 128.
        global_theta: Number. Theta of global blocks' rotary positions. Defaults
            to 160,000.
        local_theta: The same for local blocks. Defaults to 10,000.
        dtype: Keras dtype policy, or `None` (default) for Keras's own.

    Call arguments:
        inputs: Dict of integer tensors `token_ids` and `padding_mask`, both
            `(batch, tokens)`.

    Returns:
        `(batch, tokens, hidden_dim)`: the token vectors after the final norm.
    """

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        dropout=0.0,
        max_sequence_length=8192,
        global_every=3,
        local_attention=128,
        global_theta=160_000.0,
        local_theta=10_000.0,
        dtype=None,
        **kwargs,
    ):
        def norm(name):
            return keras.layers.LayerNormalization(
                epsilon=_EPSILON, center=False, dtype=dtype, name=name
            )

        self.token_embedding = keras.layers.Embedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=keras.initializers.TruncatedNormal(
                stddev=0.02
            ),
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

    def get_config(self):
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


def _layers(block):
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


def _positions(encoder):
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

_FUSED = ".attn.Wqkv.weight"
_PARTS = ("query", "key", "value")


class _Checkpoint(HuggingFaceCheckpoint):
    """A checkpoint whose fused projections appear as three tensors each."""

    @property
    def names(self):
        fused = {name for name in super().names if name.endswith(_FUSED)}
        parts = {_of_part(name, part) for name in fused for part in _PARTS}
        return (super().names - fused) | parts

    def read(self, name):
        for i, part in enumerate(_PARTS):
            if name.endswith(_of_part(_FUSED, part)):
                fused = name.replace(_of_part(_FUSED, part), _FUSED)
                return np.array_split(super().read(fused), 3)[i]
        return super().read(name)


def _of_part(name, part):
    return f"{name.removesuffix('.weight')}.{part}.weight"


# Keys with the only supported value, that of all published checkpoints, which
# is also the default in transformers.
_EXPECTED = {
    "attention_bias": False,
    "mlp_bias": False,
    "norm_bias": False,
    "hidden_activation": "gelu",
    "mlp_dropout": 0.0,
}


def _check(config, path):
    for key, right in _EXPECTED.items():
        if config.get(key, right) != right:
            raise UserError(
                f"`{path}`: expected {key}={shown(right)}, as all published "
                f"ModernBERTs have. Received: {key}={shown(config[key])}"
            )


def _more_arguments(config, path):
    """Returns what differs between global and local blocks.

    transformers 5 writes `layer_types` and `rope_parameters`, version 4 the
    keys of the published checkpoints.
    """
    window = config.get("local_attention", 128)
    config_checks.check_number("local_attention", window, 1, 1e9, path)
    return {
        "global_every": _global_every(config, path),
        "local_attention": int(window),
        "global_theta": _theta(config, "full_attention", path),
        "local_theta": _theta(config, "sliding_attention", path),
    }


_THETAS = {
    "full_attention": ("global_rope_theta", 160_000.0),
    "sliding_attention": ("local_rope_theta", 10_000.0),
}


def _theta(config, kind, path):
    key, default = _THETAS[kind]
    ropes = config.get("rope_parameters") or {}
    rope = ropes.get(kind) if isinstance(ropes, dict) else None
    rope = rope if isinstance(rope, dict) else {}
    if rope.get("rope_type", "default") != "default":
        raise UserError(
            f"`{path}`: expected rope_type='default' in `rope_parameters`. "
            f"Received: {shown(rope['rope_type'])}"
        )
    # A null in the published form means the other kind's theta.
    theta = rope.get("rope_theta") or config.get(key, default)
    if theta is None:
        theta = config.get("global_rope_theta", 160_000.0)
    config_checks.check_number(key, theta, 1, 1e12, path)
    return float(theta)


def _global_every(config, path):
    kinds = config.get("layer_types")
    if kinds is None:
        every = config.get("global_attn_every_n_layers", 3)
        config_checks.check_number(
            "global_attn_every_n_layers", every, 1, 1e9, path
        )
        return int(every)
    number = config["num_hidden_layers"]
    for every in range(1, number + 1):
        if kinds == [_KINDS[i % every == 0] for i in range(number)]:
            return every
    raise UserError(
        f"`{path}`: expected in `layer_types` a full_attention at every n-th "
        f"of the {number} blocks, starting with the first. Received: "
        f"{shown(kinds)}"
    )


_KINDS = ("sliding_attention", "full_attention")
_BLOCK = {
    "attention_norm": "attn_norm",
    "query": "attn.Wqkv.query",
    "key": "attn.Wqkv.key",
    "value": "attn.Wqkv.value",
    "attention_output": "attn.Wo",
    "feedforward_norm": "mlp_norm",
    "feedforward_intermediate_dense": "mlp.Wi",
    "feedforward_output_dense": "mlp.Wo",
}
HUGGINGFACE = Family(
    ModernBertBackbone,
    {
        "token_embedding": "embeddings.tok_embeddings",
        "embeddings_layer_norm": "embeddings.norm",
        "final_norm": "final_norm",
        **blocks_of(_BLOCK, "layers"),
    },
    "model.",
    arguments=BERT_ARGUMENTS,
    options={
        "activation": ("hidden_activation", "gelu"),
        "layer_norm_epsilon": ("norm_eps", _EPSILON),
        "hidden_dropout": ("embedding_dropout", 0.0),
        "attention_dropout": ("attention_dropout", 0.0),
        "attention_output_dropout": ("attention_dropout", 0.0),
        # There is no dropout after the feed-forward network.
        "ffn_output_dropout": (None, 0.0),
    },
    check=_check,
    more_arguments=_more_arguments,
    checkpoint=_Checkpoint,
)
