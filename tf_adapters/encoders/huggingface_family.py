"""Describes how to read Hugging Face checkpoints of one `model_type`."""

from collections.abc import Callable
import dataclasses
from pathlib import Path
from typing import Any

from tf_adapters.encoders.huggingface_checkpoint import HuggingFaceCheckpoint

BERT_ARGUMENTS = {
    "vocabulary_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "hidden_dim": "hidden_size",
    "intermediate_dim": "intermediate_size",
    "max_sequence_length": "max_position_embeddings",
}
OPTIONS_WITHOUT_SEGMENTS = {
    "activation": ("hidden_act", "gelu"),
    "layer_norm_epsilon": ("layer_norm_eps", 1e-12),
    "hidden_dropout": ("hidden_dropout_prob", 0.1),
    "attention_dropout": ("attention_probs_dropout_prob", 0.1),
}
BERT_OPTIONS = {
    **OPTIONS_WITHOUT_SEGMENTS,
    "num_segments": ("type_vocab_size", 2),
}


def _check_nothing(config: dict[str, Any], path: Path) -> None:
    pass


def _no_arguments(config: dict[str, Any], path: Path) -> dict[str, Any]:
    return {}


@dataclasses.dataclass(frozen=True)
class Family:
    """Describes the checkpoints of one `model_type`.

    The default values are BERT's.

    Attributes:
        backbone: Class of the backbone.
        modules: Dict from the path of each layer in the backbone to the name of
            its module in the checkpoint.
        prefix: Prefix of all module names in checkpoints of models with a head,
            such as `"bert."`.
        arguments: Dict from each argument of the backbone to the key in
            `config.json` that has its value.
        options: Dict from the name of an option, such as `activation`, to a
            pair: its key in `config.json`, or `None` if the config does not
            have it, and its default value in transformers.
        first_position: Function of the config and its path that returns the
            index of a text's first token in the checkpoint's position
            embeddings. `None` (default) for 0.
        has_token_type_row: Whether the checkpoint's token-type embedding 0 must
            be added to every token, because the backbone has no token types.
            This is so in RoBERTa.
        check: Function of the config and its path that raises a `UserError`
            if the backbone does not support the config.
        more_arguments: Function of the config and its path that returns a dict
            of further arguments of the backbone. Defaults to none.
        checkpoint: Function of the folder and the prefix that returns the
            `HuggingFaceCheckpoint`.
    """

    backbone: Callable[..., Any]
    modules: dict[str, str]
    prefix: str
    arguments: dict[str, str] = dataclasses.field(
        default_factory=BERT_ARGUMENTS.copy
    )
    options: dict[str, tuple[Any, ...]] = dataclasses.field(
        default_factory=BERT_OPTIONS.copy
    )
    first_position: Callable[..., Any] | None = None
    has_token_type_row: bool = False
    check: Callable[..., Any] = _check_nothing
    more_arguments: Callable[..., Any] = _no_arguments
    checkpoint: Callable[..., Any] = HuggingFaceCheckpoint
