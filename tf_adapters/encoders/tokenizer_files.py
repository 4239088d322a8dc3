"""Saves a tokenizer in a `.keras` file, as plain values and files."""

import json
from pathlib import Path
from typing import Any

import keras
import keras_hub

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.extras import has_tensorflow_text
from tf_adapters.encoders.huggingface_tokenizer import HuggingFaceTokenizer

_WORDS = "vocabulary.txt"  # KerasHub's file name.


def tokenizer_config(
    tokenizer: HuggingFaceTokenizer | keras_hub.tokenizers.Tokenizer,
) -> dict[str, Any]:
    """Returns the configuration of a tokenizer, as a dict of plain values.

    `load_tokenizer` needs this dict and the tokenizer's files.

    Args:
        tokenizer: Tokenizer from `load_encoder` or from KerasHub.

    Raises:
        UserError: If `tokenizer` is another kind of object.
    """
    if isinstance(tokenizer, HuggingFaceTokenizer):
        return {"library": "tokenizers"}
    if not isinstance(tokenizer, keras_hub.tokenizers.Tokenizer):
        raise UserError(
            "Only a tokenizer from `load_encoder`, or of KerasHub, is saved "
            f"with a model. Received: {type(tokenizer).__name__}"
        )
    layer = json.loads(
        json.dumps(keras.saving.serialize_keras_object(tokenizer))
    )
    # KerasHub has two implementations, Python and TensorFlow, and does not save
    # which of them a tokenizer uses.
    in_python = tokenizer._allow_python_workflow
    layer["config"]["_allow_python_workflow"] = in_python
    return {"library": "keras_hub", "layer": layer}


def save_tokenizer_files(
    tokenizer: HuggingFaceTokenizer | keras_hub.tokenizers.Tokenizer,
    folder: str | Path,
) -> None:
    """Writes a tokenizer's vocabulary into an existing folder."""
    if isinstance(tokenizer, HuggingFaceTokenizer):
        tokenizer.save(folder)
    elif _is_word_piece(tokenizer):
        # `load_tokenizer` reads this file, since KerasHub would read it with
        # `str.strip` and so remove some tokens.
        text = "\n".join(tokenizer.get_vocabulary())
        (Path(folder) / _WORDS).write_text(text, "utf-8", newline="\n")
    else:
        tokenizer.save_assets(str(folder))


def load_tokenizer(
    config: dict[str, Any], folder: str | Path
) -> HuggingFaceTokenizer | keras_hub.tokenizers.Tokenizer:
    """Creates a saved tokenizer from its configuration and its files.

    Args:
        config: Dict that `tokenizer_config` returned.
        folder: Path of the folder that `save_tokenizer_files` wrote.

    Raises:
        UserError: If the tokenizer needs TensorFlow Text, which is missing, or
            if its files are damaged or name a class outside of `transformers`.
    """
    if config["library"] == "tokenizers":
        return _python_tokenizer(folder)
    if not has_tensorflow_text():
        raise UserError(
            "This model was saved with a tokenizer of TensorFlow Text, which "
            "is not installed. Install `tensorflow-text`, or save the adapter "
            "with `model.save_adapter(folder)` and load that."
        )
    # Keras only finds classes that were imported.
    from tf_adapters.encoders import own_tokenizers  # noqa: F401

    tokenizer = keras.saving.deserialize_keras_object(config["layer"])
    if _is_word_piece(tokenizer):
        text = (Path(folder) / _WORDS).read_text(encoding="utf-8")
        tokenizer.set_vocabulary(text.split("\n"))
    else:
        tokenizer.load_assets(str(folder))
    return tokenizer


def _python_tokenizer(folder: str | Path) -> HuggingFaceTokenizer:
    try:
        return HuggingFaceTokenizer(folder)
    except (OSError, ValueError) as error:
        raise UserError(
            "The tokenizer in this file cannot be loaded. Expected: a "
            "tokenizer of a class that `transformers` has. Code in the file "
            f"is not run. ({type(error).__name__}: {cut(error)})"
        ) from error


def _is_word_piece(tokenizer: keras_hub.tokenizers.Tokenizer) -> bool:
    return isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer)
