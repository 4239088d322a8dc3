"""Tokenizes texts and finds the characters that each token stands for.

The ids are the same as from the encoder's own tokenizer. Offsets come from an
implementation that supports them: Hugging Face's tokenizers for WordPiece and
byte-level BPE, TensorFlow Text for SentencePiece.
"""

from collections.abc import Sequence
from typing import Any

import keras_hub
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens.library_tokenizers import library_tokenizer

_OF_LIBRARY = (
    keras_hub.models.BertTokenizer,
    keras_hub.models.DistilBertTokenizer,
    keras_hub.models.ElectraTokenizer,
    keras_hub.models.RobertaTokenizer,
)


def tokenize_with_offsets(
    tokenizer: Any, texts: Sequence[str]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the tokens of each text, and their offsets in it.

    Args:
        tokenizer: Tokenizer from `load_encoder`.
        texts: List of strings.

    Returns:
        List with a pair of arrays for each text: int32 ids `(tokens,)`, without
        special tokens; and int64 offsets `(tokens, 2)` in characters, such that
        `text[begin:end]` is the token's text without surrounding spaces.

    Raises:
        UserError: If the tokenizer does not support offsets.
    """
    if hasattr(tokenizer, "with_offsets"):
        found = tokenizer.with_offsets(texts)
    elif isinstance(tokenizer, _OF_LIBRARY):
        found = _encode(library_tokenizer(tokenizer), texts)
    elif isinstance(tokenizer, keras_hub.models.XLMRobertaTokenizer):
        found = _sentence_piece(tokenizer, texts)
    else:
        raise UserError(
            "Finding answers in texts needs a tokenizer that maps each token "
            "to its characters: one of BERT, ELECTRA, DistilBERT, MPNet, "
            "RoBERTa or XLM-R, or of a folder whose only vocabulary is "
            f"`tokenizer.json`. Received: {type(tokenizer).__name__}"
        )
    return [
        (np.array(ids, "int32"), _trimmed(text, offsets))
        for text, (ids, offsets) in zip(texts, found, strict=True)
    ]


def _encode(tokenizer: Any, texts: Any) -> list[tuple[Any, Any]]:
    return [
        (encoding.ids, encoding.offsets)
        for encoding in tokenizer.encode_batch(texts)
    ]


def _sentence_piece(tokenizer: Any, texts: Any) -> list[Any]:
    # Imported here: other tokenizers do not need TensorFlow.
    import tensorflow_text as tf_text

    library: Any = tf_text.SentencepieceTokenizer(model=tokenizer.proto)
    ids, begins, ends = library.tokenize_with_offsets(texts)
    unknown = tokenizer.unk_token_id - 1
    found = []
    for text, row, begin, end in zip(
        texts, ids.to_list(), begins.to_list(), ends.to_list(), strict=True
    ):
        # TensorFlow Text's offsets are in bytes.
        lengths = [len(character.encode()) for character in text]
        indices = np.repeat(np.arange(len(text) + 1), [*lengths, 1])
        # KerasHub adds one to all ids, and moves the id of the unknown token.
        shifted = [(unknown if i == 0 else i) + 1 for i in row]
        found.append((shifted, np.stack([indices[begin], indices[end]], -1)))
    return found


def _trimmed(text: str, offsets: Any) -> np.ndarray:
    """Shrinks offsets to exclude spaces at both ends of tokens."""
    trimmed = np.array(offsets, "int64").reshape(-1, 2)
    for place, (begin, end) in enumerate(trimmed):
        part = text[begin:end]
        trimmed[place, 0] += len(part) - len(part.lstrip())
        trimmed[place, 1] -= len(part) - len(part.rstrip())
        trimmed[place, 1] = max(trimmed[place])
    return trimmed
