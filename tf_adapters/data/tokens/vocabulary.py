"""What the tokens of a vocabulary say of texts."""

import numpy as np
from tokenizers import decoders

# What byte-level BPE and SentencePiece write for the space before a word, and
# WordPiece before what goes on with one.
_BYTE_SPACE, _SPACE, _INSIDE = "\u0120", "\u2581", "##"


def tokens_of(tokenizer):
    """Returns the list of tokens by id."""
    ids = getattr(tokenizer, "vocabulary", None)
    if not isinstance(ids, dict):
        return list(tokenizer.get_vocabulary())
    tokens = [""] * (1 + max(ids.values()))
    for token, i in ids.items():
        tokens[i] = token
    return tokens


def continues_word(tokenizer):
    """Returns which tokens go on with a word, a boolean array by id."""
    tokens = tokens_of(tokenizer)
    mark = _mark(tokens)
    marked = np.array([token.startswith(mark) for token in tokens])
    return marked if mark == _INSIDE else ~marked


def token_texts(tokenizer, size):
    """Returns what each token stands for in a text, a list by id.

    A token of byte-level BPE or SentencePiece that begins a word has the space
    before it; a word piece that goes on with one keeps its `##`. Bytes that are
    no whole character become U+FFFD.

    Args:
        tokenizer: Tokenizer from `load_encoder`.
        size: Length of the list; some encoders have more ids than tokens.
    """
    tokens = tokens_of(tokenizer)
    mark = _mark(tokens)
    if mark == _BYTE_SPACE:
        decoder = decoders.ByteLevel()
        tokens = [decoder.decode([token]) for token in tokens]
    elif mark == _SPACE:
        tokens = [token.replace(_SPACE, " ") for token in tokens]
    return tokens + [""] * (size - len(tokens))


def _mark(tokens):
    """Returns the mark that is commonest: byte-level has tokens of hashes."""
    return max(
        (_BYTE_SPACE, _SPACE, _INSIDE),
        key=lambda mark: sum(token.startswith(mark) for token in tokens),
    )
