"""Checks a folder in KerasHub's format, before KerasHub loads it."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.encoders import config_checks
from tf_adapters.encoders.sentence_piece_checks import check_model

if TYPE_CHECKING:
    from collections.abc import Collection
    import os

    import keras_hub


_SIZES = (
    "num_layers",
    "num_heads",
    "hidden_dim",
    "intermediate_dim",
    "max_sequence_length",
)
# Sizes that not all families have, or that have several names.
_OTHER_SIZES = (
    "embedding_dim",
    "num_groups",
    "num_segments",
    "vocab_size",
    "vocabulary_size",
)


def check_backbone(
    folder: str | pathlib.Path, class_names: Collection[str]
) -> None:
    """Checks that `config.json` describes a known encoder and fits the weights.

    Args:
        folder: Path of a folder in KerasHub's format.
        class_names: Names of the classes of known backbones.

    Raises:
        UserError: If a value is wrong or missing, or if the weights files are
            too small. The message names the value.
    """
    path = pathlib.Path(folder) / "config.json"
    found = config_checks.read_json(path)
    name = found.get("class_name")
    if not isinstance(name, str) or name not in class_names:
        raise UserError(
            f"`{path}`: expected an encoder of one of the kinds "
            f"{', '.join(class_names)}. Received: {cut(name)}"
        )
    config = _config(found, path)
    missing = [key for key in _SIZES if key not in config]
    if missing:
        raise UserError(f"`{path}` lacks the keys {missing}.")
    sizes = {k: config[k] for k in (*_SIZES, *_OTHER_SIZES) if k in config}
    # A link to itself is no file.
    files = filter(pathlib.Path.is_file, path.parent.glob("*.weights.h5"))
    stored = sum(file.stat().st_size for file in files)
    config_checks.check_sizes(sizes, {k: k for k in sizes}, stored, path)
    rate = config.get("dropout", 0)
    config_checks.check_number("dropout", rate, 0, 0.99, path)


def check_finite(
    backbone: keras_hub.models.Backbone, name: str | os.PathLike[str]
) -> None:
    """Raises a `UserError` if a weight of a loaded backbone is not finite."""
    for weight in backbone.weights:
        if not np.isfinite(weight.numpy()).all():
            raise UserError(
                f"Weight `{weight.path}` of the encoder `{name}` has values "
                "that are not finite. Copy it again from where it comes from."
            )


def check_tokenizer(folder: str | pathlib.Path) -> None:
    """Checks a tokenizer's pieces, and that it does not pad texts itself.

    If the folder has no tokenizer, KerasHub raises its own error later.

    Raises:
        UserError: If `sequence_length` is set, or `tokenizer.json` or a
            SentencePiece model is damaged.
    """
    path = pathlib.Path(folder) / "tokenizer.json"
    pieces = path.parent / "assets" / "tokenizer" / "vocabulary.spm"
    if pieces.exists():
        check_model(pieces)
    if not path.exists():
        return
    length = _config(config_checks.read_json(path), path).get("sequence_length")
    if length is not None:
        raise UserError(
            f"`{path}`: `sequence_length` must be null, since texts are padded "
            f"later. Received: {shown(length)}"
        )


def _config(found: dict[str, Any], path: pathlib.Path) -> dict[str, Any]:
    config = found.get("config")
    if not isinstance(config, dict):
        raise UserError(
            f"`{path}`: `config` must be an object. Received: {shown(config)}"
        )
    return config
