"""Reads ModernBERT's Hugging Face folders (`model_type: modernbert`)."""

from pathlib import Path
from typing import Any

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.encoders import config_checks
from tf_adapters.encoders.huggingface_checkpoint import HuggingFaceCheckpoint
from tf_adapters.encoders.huggingface_family import BERT_ARGUMENTS
from tf_adapters.encoders.huggingface_family import Family
from tf_adapters.encoders.huggingface_weights import blocks_of
from tf_adapters.encoders.modernbert import ModernBertBackbone

_FUSED = ".attn.Wqkv.weight"
_PARTS = ("query", "key", "value")


class _Checkpoint(HuggingFaceCheckpoint):
    """A ModernBERT checkpoint, read with separate query, key and value.

    The file has one fused kernel for the three projections of a block.
    """

    @property
    def names(self) -> set[str]:
        fused = {name for name in super().names if name.endswith(_FUSED)}
        parts = {_of_part(name, part) for name in fused for part in _PARTS}
        return (super().names - fused) | parts

    def read(self, name: str) -> np.ndarray:
        for i, part in enumerate(_PARTS):
            if name.endswith(_of_part(_FUSED, part)):
                fused = name.replace(_of_part(_FUSED, part), _FUSED)
                return np.array_split(super().read(fused), 3)[i]
        return super().read(name)


def _of_part(name: str, part: str) -> str:
    return f"{name.removesuffix('.weight')}.{part}.weight"


# The only supported value of each key. All published checkpoints have these
# values, and they are the defaults in transformers.
_EXPECTED = {
    "attention_bias": False,
    "mlp_bias": False,
    "norm_bias": False,
    "hidden_activation": "gelu",
    "mlp_dropout": 0.0,
}


def _check(config: dict[str, Any], path: Path) -> None:
    for key, right in _EXPECTED.items():
        if config.get(key, right) != right:
            raise UserError(
                f"`{path}`: expected {key}={shown(right)}, as all published "
                f"ModernBERTs have. Received: {key}={shown(config[key])}"
            )


def _more_arguments(
    config: dict[str, Any], path: Path
) -> dict[str, int | float]:
    """Returns the backbone's arguments for global and local blocks.

    They are read from `layer_types` and `rope_parameters` if transformers 5
    wrote the config. Version 4 writes other keys, such as
    `global_attn_every_n_layers`, as in the published checkpoints.
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


def _theta(config: dict[str, Any], kind: str, path: Path) -> float:
    key, default = _THETAS[kind]
    ropes = config.get("rope_parameters") or {}
    rope = ropes.get(kind) if isinstance(ropes, dict) else None
    rope = rope if isinstance(rope, dict) else {}
    # Version 4 writes `rope_scaling`, which may name the type `type`.
    scaling = config.get("rope_scaling") or {}
    for found in (rope, scaling if isinstance(scaling, dict) else {}):
        rope_type = found.get("rope_type", found.get("type", "default"))
        if rope_type != "default":
            raise UserError(
                f"`{path}`: expected rope_type='default' in `rope_parameters` "
                f"or `rope_scaling`. Received: {shown(rope_type)}"
            )
    # In the published checkpoints, local blocks use the theta of global blocks
    # if their own is null.
    theta = rope.get("rope_theta") or config.get(key, default)
    if theta is None:
        theta = config.get("global_rope_theta", 160_000.0)
    config_checks.check_number(key, theta, 1, 1e12, path)
    return float(theta)


def _global_every(config: dict[str, Any], path: Path) -> int:
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
        **blocks_of(_BLOCK, "layers.{}"),
    },
    "model.",
    arguments=BERT_ARGUMENTS,
    options={
        "activation": ("hidden_activation", "gelu"),
        "layer_norm_epsilon": ("norm_eps", 1e-5),
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
