"""Checks types and bounds in an encoder's `config.json`.

These checks run before anything is built, because a damaged file could ask for
terabytes of memory.
"""

import math
import os
import pathlib
from typing import Any

from tf_adapters.common import text_files
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown

# Twice the depth of the deepest encoder of these families.
_MAX_LAYERS = 100
# The transformers library makes lists of these lengths when it reads a
# configuration, before it loads a tokenizer.
_LENGTHS = {"num_hidden_layers": _MAX_LAYERS, "num_labels": 1_000_000}
# A configuration may describe at most this many more weights than its weights
# files have bytes. Exact shapes are compared when each tensor is read.
_SPARE_WEIGHTS = 10_000_000
# Largest size in bytes of files with settings, vocabularies and weights, by
# ending or name.
_MOST = {".model": 1 << 28, ".spm": 1 << 28, ".h5": 1 << 40}
# Text files that KerasHub or transformers opens. Others, such as a table next
# to an encoder, may have any size.
_NAMES = (
    *("added_tokens.json", "config.json", "merges.txt", "metadata.json"),
    *("model.safetensors.index.json", "model.weights.json"),
    *("preprocessor.json", "special_tokens_map.json", "task.json"),
    *("tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt"),
    *("vocabulary.json", "vocabulary.txt"),
)
_MOST |= dict.fromkeys(_NAMES, 1 << 28)


def read_json(path: str | pathlib.Path) -> dict[str, Any]:
    """Returns the content of a JSON file, which must be an object.

    Raises:
        UserError: If the content is not an object, or the file cannot be read.
    """
    if not os.path.exists(path):
        raise UserError(
            f"`{path}` is missing. An encoder's folder holds `config.json`, "
            "`model.safetensors` and the files of its vocabulary."
        )
    try:
        text = text_files.read_text(path)
    except UserError as error:
        raise UserError(f"`{path}` cannot be read: {error}") from error
    try:
        found = text_files.parse_json(text)
    except UserError as error:
        raise UserError(f"`{path}` is not valid JSON: {cut(error)}") from error
    if not isinstance(found, dict):
        raise UserError(
            f"`{path}` must hold a JSON object {{...}}. Received: a "
            f"{type(found).__name__}"
        )
    return found


def check_files(folder: str | pathlib.Path) -> None:
    """Checks an encoder's files before other libraries open them.

    Args:
        folder: Path of the encoder's folder.

    Raises:
        UserError: If a file of an encoder is a pipe or a device, or has more
            than 256 MiB and does not hold weights. The message names the file.
    """
    for path in sorted(pathlib.Path(folder).rglob("*")):
        most = _MOST.get(path.name, _MOST.get(path.suffix))
        if most is None or path.is_dir():
            continue
        try:
            text_files.check_file(path, most)
        except UserError as error:
            raise UserError(f"`{path}` cannot be read: {error}.") from error


def check_lengths(config: dict[str, Any], path: pathlib.Path) -> None:
    """Checks a configuration before the transformers library reads it.

    Args:
        config: Content of `config.json`.
        path: Path of the file, for the message.

    Raises:
        UserError: If it has a number for which transformers would need more
            memory or time than there is.
    """
    for key, most in _LENGTHS.items():
        value = config.get(key)
        if isinstance(value, int | float) and value > most:
            raise UserError(
                f"`{path}`: `{key}` must be at most {most}. Received: "
                f"{cut(value)}"
            )


def check_sizes(
    sizes: dict[str, Any],
    keys: dict[str, str],
    stored_bytes: int,
    path: pathlib.Path,
) -> None:
    """Checks that an encoder's sizes are valid and fit its weights files.

    Args:
        sizes: Dict from arguments of a KerasHub backbone to their values.
        keys: Dict from these arguments to their keys in `config.json`.
        stored_bytes: Total number of bytes of the weights files.
        path: Path of `config.json`, for the message.

    Raises:
        UserError: If a size is invalid. The message names its key.
    """
    for name, value in sizes.items():
        if type(value) is not int or value < 1:
            raise UserError(
                f"`{path}`: `{keys[name]}` must be a positive integer. "
                f"Received: {shown(value)}"
            )
    if sizes["hidden_dim"] % sizes["num_heads"]:
        raise UserError(
            f"`{path}`: `{keys['hidden_dim']}`={cut(sizes['hidden_dim'])} must "
            f"be a multiple of `{keys['num_heads']}`="
            f"{cut(sizes['num_heads'])}."
        )
    if sizes["num_layers"] > _MAX_LAYERS:
        raise UserError(
            f"`{path}`: `{keys['num_layers']}` must be at most {_MAX_LAYERS}. "
            f"Received: {cut(sizes['num_layers'])}"
        )
    claimed = _count_weights(**sizes)
    if claimed > stored_bytes + _SPARE_WEIGHTS:
        raise UserError(
            f"`{path}` describes an encoder of {cut(claimed)} weights or more, "
            f"but its weight files have {stored_bytes} bytes. Copy the folder "
            "again from where it comes from."
        )


def _count_weights(
    num_layers: int,
    num_heads: int,
    hidden_dim: int,
    intermediate_dim: int,
    max_sequence_length: int,
    embedding_dim: int | None = None,
    vocabulary_size: int = 0,
    vocab_size: int = 0,
    num_segments: int = 0,
    num_groups: int | None = None,
    bucket_size: int = 0,
) -> int:
    """Estimates the number of weights of a backbone from its arguments.

    Biases and other vectors are not counted.
    """
    rows = vocabulary_size + vocab_size + num_segments
    # A backbone with relative positions (`bucket_size`) has no absolute ones.
    rows += 2 * bucket_size or max_sequence_length
    block = 4 * hidden_dim**2 + 2 * hidden_dim * intermediate_dim
    return (
        rows * (embedding_dim or hidden_dim)
        + (num_groups or num_layers) * block
    )


def check_number(
    key: str | None, value: Any, least: float, most: float, path: pathlib.Path
) -> None:
    """Raises a `UserError` unless a value is a number from `least` to `most`.

    Args:
        key: Key of the value in the file, for the message.
        value: The value, of any type.
        least: Minimum.
        most: Maximum.
        path: Path of the file, for the message.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Bounds come first: `isnan` fails on integers too large for a float.
    if not is_number or not least <= value <= most or math.isnan(value):
        raise UserError(
            f"`{path}`: `{key}` must be a number from {least:g} to {most:g}. "
            f"Received: {shown(value)}"
        )


def check_flag(key: str, value: Any, path: pathlib.Path) -> None:
    """Raises a `UserError` unless a value is true, false or null."""
    if not isinstance(value, bool | None):
        raise UserError(
            f"`{path}`: `{key}` must be true, false or null. Received: "
            f"{shown(value)}"
        )
