"""Tokenizes words, and cuts long sentences into windows of whole words."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

if TYPE_CHECKING:
    from tf_adapters.data.tokens.packer import Packer


# Many words in one call, because each call has a fixed cost.
_WORDS_AT_ONCE = 4096


def tokenize_words(packer: Packer, words: Sequence[str]) -> list[Any]:
    """Tokenizes words, and returns an int32 array of token ids for each.

    Each array has at least one token. Words are tokenized as if they followed a
    space. A word without tokens, such as a single control character, becomes
    the unknown token.

    Args:
        packer: `Packer`.
        words: List of strings. Repeated words are tokenized once.
    """
    unknown = np.array([unknown_id(packer.tokenizer)], "int32")
    prefix = word_prefix(packer.tokenizer)
    different, found = list(dict.fromkeys(words)), {}
    for start in range(0, len(different), _WORDS_AT_ONCE):
        part = different[start : start + _WORDS_AT_ONCE]
        rows = packer.token_arrays([prefix + word for word in part])
        found.update(zip(part, rows, strict=True))
    return [found[word] if len(found[word]) else unknown for word in words]


def word_prefix(tokenizer: Any) -> str:
    """Returns a prefix with which a word is tokenized as if inside a text.

    In byte-level BPE, a word has different tokens after a space. For other
    tokenizers the prefix makes no difference.
    """
    return "" if getattr(tokenizer, "add_prefix_space", False) else " "


def unknown_id(tokenizer: Any) -> Any:
    """Returns the id of the unknown token of a tokenizer."""
    if hasattr(tokenizer, "unk_token_id"):
        return tokenizer.unk_token_id
    vocabulary = getattr(tokenizer, "vocabulary", None)
    if not isinstance(vocabulary, dict):
        return tokenizer.token_to_id(getattr(tokenizer, "oov_token", "<unk>"))
    # Byte-level BPE. ModernBERT's token is `[UNK]`.
    names = [name for name in ("<unk>", "[UNK]") if name in vocabulary]
    return vocabulary[names[0]] if names else tokenizer.pad_token_id


def windows(lengths: Any, room: Any) -> Iterator[Any]:
    """Divides the words of a sentence into windows, and yields their slices.

    A word that is longer than a window gets a slice of its own.

    Args:
        lengths: Number of tokens of each word, at least 1.
        room: Largest number of tokens in a window.
    """
    start, used = 0, 0
    for place, length in enumerate(lengths):
        if used and used + length > room:
            yield slice(start, place)
            start, used = place, 0
        used += length
    if start < len(lengths):
        yield slice(start, len(lengths))
