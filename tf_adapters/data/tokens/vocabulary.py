"""The tokens of a vocabulary, and the texts that they stand for."""

from collections.abc import Callable
from typing import Any

import numpy as np
from tokenizers import decoders

# Marks in tokens. In byte-level BPE and SentencePiece, a mark means a space
# before a word. In WordPiece, it means that a word continues.
_BYTE_SPACE, _SPACE, _INSIDE = "\u0120", "\u2581", "##"


def tokens_of(tokenizer: Any) -> Any:
    """Returns a tokenizer's tokens as a list, in the order of ids."""
    ids = getattr(tokenizer, "vocabulary", None)
    if not isinstance(ids, dict):
        return list(tokenizer.get_vocabulary())
    tokens = [""] * (1 + max(ids.values()))
    for token, i in ids.items():
        tokens[i] = token
    return tokens


def continues_word(tokenizer: Any) -> np.ndarray:
    """Returns a boolean array: whether each token id continues a word."""
    tokens = tokens_of(tokenizer)
    mark = _mark(tokens)
    marked = np.array([token.startswith(mark) for token in tokens])
    return marked if mark == _INSIDE else ~marked


def word_of(tokenizer: Any) -> Callable[[list[str]], str]:
    """Returns a function that joins the tokens of a word to its text.

    The text has no spaces around it. In byte-level BPE, the bytes of a
    character may be in several tokens, which are therefore decoded together.

    Args:
        tokenizer: Tokenizer from `load_encoder`.
    """
    mark = _mark(tokens_of(tokenizer))
    if mark == _BYTE_SPACE:
        decoder = decoders.ByteLevel()
        return lambda tokens: decoder.decode(tokens).strip()
    if mark == _SPACE:
        return lambda tokens: "".join(tokens).replace(_SPACE, " ").strip()
    return lambda tokens: "".join(
        token.removeprefix(_INSIDE) if place else token
        for place, token in enumerate(tokens)
    )


def token_texts(tokenizer: Any, size: Any) -> list[str]:
    """Returns a list of the tokens' texts, in the order of ids.

    In byte-level BPE and SentencePiece, a token that begins a word includes the
    space before it. In WordPiece, a token that continues a word keeps its `##`.
    Bytes that are not a whole character become U+FFFD.

    Args:
        tokenizer: Tokenizer from `load_encoder`.
        size: Length of the list, padded with empty texts. Some encoders have
            more ids than tokens.
    """
    tokens = tokens_of(tokenizer)
    mark = _mark(tokens)
    if mark == _BYTE_SPACE:
        decoder = decoders.ByteLevel()
        tokens = [decoder.decode([token]) for token in tokens]
    elif mark == _SPACE:
        tokens = [token.replace(_SPACE, " ") for token in tokens]
    return tokens + [""] * (size - len(tokens))


def _mark(tokens: Any) -> str:
    """Returns the mark with which a vocabulary's tokens begin most often.

    Other marks can occur too: byte-level BPE has tokens that begin with `##`.
    """
    return max(
        (_BYTE_SPACE, _SPACE, _INSIDE),
        key=lambda mark: sum(token.startswith(mark) for token in tokens),
    )
