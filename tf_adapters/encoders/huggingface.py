"""Loads a local Hugging Face folder as a KerasHub backbone.

The backbone is built from `config.json`, and its weights are ported here
instead of by KerasHub's converters. The converters drop RoBERTa's token-type
embedding, refuse checkpoints without a pooler or without a prefix, and ignore
activation, epsilon, number of segments and dropout in the config. Using a table
from variables to tensors (`huggingface_weights.py`) is shorter than correcting
these faults, and reveals both missing and unexpected tensors.
"""

from __future__ import annotations

import dataclasses
import pathlib
from typing import TYPE_CHECKING
from typing import Any

import keras_hub

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.encoders import albert
from tf_adapters.encoders import config_checks
from tf_adapters.encoders import deberta
from tf_adapters.encoders import huggingface_weights
from tf_adapters.encoders import modernbert_folder
from tf_adapters.encoders import mpnet
from tf_adapters.encoders.huggingface_family import BERT_ARGUMENTS
from tf_adapters.encoders.huggingface_family import Family

if TYPE_CHECKING:
    import keras


# Names as in transformers/activations.py. `gelu_fast` and `gelu_pytorch_tanh`
# are the same function as `gelu_new`, written differently.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}


_ELECTRA_ARGUMENTS = {
    **{k: v for k, v in BERT_ARGUMENTS.items() if k != "vocabulary_size"},
    "vocab_size": "vocab_size",
    "embedding_dim": "embedding_size",
}
_DISTILBERT_ARGUMENTS = {
    "vocabulary_size": "vocab_size",
    "num_layers": "n_layers",
    "num_heads": "n_heads",
    "hidden_dim": "dim",
    "intermediate_dim": "hidden_dim",
    "max_sequence_length": "max_position_embeddings",
}
_DISTILBERT_OPTIONS = {
    "activation": ("activation", "gelu"),
    # Fixed in transformers/models/distilbert/modeling_distilbert.py.
    "layer_norm_epsilon": (None, 1e-12),
    "hidden_dropout": ("dropout", 0.1),
    "attention_dropout": ("attention_dropout", 0.1),
    # Also fixed there: no dropout after the output projection of attention.
    "attention_output_dropout": (None, 0.0),
}


def _first_position(config: dict[str, Any], path: pathlib.Path) -> int:
    """Returns the first token's index in RoBERTa's position embeddings."""
    padding = config.get("pad_token_id", 1)
    longest = config["max_position_embeddings"]
    config_checks.check_number("pad_token_id", padding, 0, longest - 2, path)
    return padding + 1


_ROBERTA = Family(
    keras_hub.models.RobertaBackbone,
    huggingface_weights.ROBERTA,
    "roberta.",
    first_position=_first_position,
    has_token_type_row=True,
)
FAMILIES = {
    "bert": Family(
        keras_hub.models.BertBackbone, huggingface_weights.BERT, "bert."
    ),
    "roberta": _ROBERTA,
    "xlm-roberta": dataclasses.replace(
        _ROBERTA, backbone=keras_hub.models.XLMRobertaBackbone
    ),
    "distilbert": Family(
        keras_hub.models.DistilBertBackbone,
        huggingface_weights.DISTILBERT,
        "distilbert.",
        _DISTILBERT_ARGUMENTS,
        _DISTILBERT_OPTIONS,
    ),
    "electra": Family(
        keras_hub.models.ElectraBackbone,
        huggingface_weights.ELECTRA,
        "electra.",
        _ELECTRA_ARGUMENTS,
    ),
    "mpnet": mpnet.HUGGINGFACE,
    "albert": albert.HUGGINGFACE,
    "deberta-v2": deberta.HUGGINGFACE,
    "modernbert": modernbert_folder.HUGGINGFACE,
}


def load_huggingface(
    folder: str | pathlib.Path, dtype: keras.DTypePolicy | str | None = None
) -> tuple[keras_hub.models.Backbone, dict[str, Any]]:
    """Loads the model of a Hugging Face folder.

    Args:
        folder: Path of a folder with `config.json` and `model.safetensors`
            (or `model.safetensors.index.json` and its parts).
        dtype: Keras dtype policy of the backbone, or `None` (default).

    Returns:
        The backbone, and a dict with the fields of `Encoder` that depend on the
        config: `activation`, `layer_norm_epsilon`, the dropout rates, and
        `has_pooler`.

    Raises:
        UserError: If the folder is not a checkpoint of a known family, or if
            its weights do not fit its config.
    """
    folder = pathlib.Path(folder)
    path = folder / "config.json"
    config = config_checks.read_json(path)
    family = _family(config, folder)
    family.check(config, path)
    options = _options(config, family, path)
    arguments = _arguments(config, family, path)
    checkpoint = family.checkpoint(folder, family.prefix)
    keys = {**family.arguments, "num_segments": "type_vocab_size"}
    num_segments = options.pop("num_segments", None)
    first_position = 0
    if family.first_position is not None:
        longest = arguments["max_sequence_length"]
        config_checks.check_number(
            "max_position_embeddings", longest, 1, 1e9, path
        )
        first_position = family.first_position(config, path)
        arguments["max_sequence_length"] -= first_position
    if num_segments is not None and not family.has_token_type_row:
        arguments["num_segments"] = num_segments
    config_checks.check_sizes(arguments, keys, checkpoint.num_bytes, path)
    arguments |= family.more_arguments(config, path)
    backbone = family.backbone(
        **arguments, dropout=options["hidden_dropout"], dtype=dtype
    )
    options["has_pooler"] = huggingface_weights.port_weights(
        backbone, checkpoint, family, first_position
    )
    return backbone, options


def _family(config: dict[str, Any], folder: pathlib.Path) -> Family:
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise UserError(
            f"`{folder}` holds a model of an unknown kind. Expected: "
            f"model_type in config.json is one of {', '.join(FAMILIES)}. "
            f"Received: model_type={shown(model_type)}"
        )
    position_type = config.get("position_embedding_type", "absolute")
    # Some ModernBERTs have another value, which their model does not read.
    if model_type != "modernbert" and position_type != "absolute":
        raise UserError(
            f"`{folder}` uses positions that KerasHub's encoders do not have. "
            "Expected: position_embedding_type='absolute'. Received: "
            f"position_embedding_type={shown(position_type)}"
        )
    if config.get("is_decoder"):
        raise UserError(
            f"`{folder}` holds a decoder (is_decoder is true in config.json); "
            "expected an encoder."
        )
    return FAMILIES[model_type]


def _arguments(
    config: dict[str, Any], family: Family, path: pathlib.Path
) -> dict[str, Any]:
    missing = [key for key in family.arguments.values() if key not in config]
    if missing:
        raise UserError(
            f"`{path}` lacks the keys {missing}, which a "
            f"`{config['model_type']}` model needs."
        )
    return {name: config[key] for name, key in family.arguments.items()}


def _options(
    config: dict[str, Any], family: Family, path: pathlib.Path
) -> dict[str, Any]:
    keys = {name: key for name, (key, _) in family.options.items()}
    options = {
        name: config.get(key, default)
        for name, (key, default) in family.options.items()
    }
    activation = options["activation"]
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise UserError(
            f"`{path}` asks for an unknown activation. Expected one of: "
            f"{', '.join(ACTIVATIONS)}. Received: "
            f"{keys['activation']}={shown(activation)}"
        )
    for name, value in options.items():
        if name == "layer_norm_epsilon":
            config_checks.check_number(keys[name], value, 1e-30, 1, path)
        elif name.endswith("dropout"):
            config_checks.check_number(keys[name], value, 0, 0.99, path)
    return {**options, "activation": ACTIVATIONS[activation]}
