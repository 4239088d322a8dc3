"""Words become tokens, and long sentences windows that lose no word."""

import numpy as np

# A tokenizer's call has a cost of its own.
_WORDS_AT_ONCE = 4096


def tokenize_words(packer, words):
    """Returns an int32 array with at least one token for each word.

    A word is tokenised as it would be after a space. One that leaves nothing,
    a lone control character, say, becomes the unknown token.

    Args:
        packer: `TextPacker` or `PythonPacker`.
        words: List of strings; each that recurs is tokenised once.
    """
    unknown = np.array([unknown_id(packer.tokenizer)], "int32")
    prefix = word_prefix(packer.tokenizer)
    different, found = list(dict.fromkeys(words)), {}
    for start in range(0, len(different), _WORDS_AT_ONCE):
        part = different[start : start + _WORDS_AT_ONCE]
        rows = packer.token_arrays([prefix + word for word in part])
        found.update(zip(part, rows, strict=True))
    return [found[word] if len(found[word]) else unknown for word in words]


def word_prefix(tokenizer):
    """Returns what goes before a word so that it is one within a text.

    Byte-level BPE has other tokens after a space; the others do not care.
    """
    return "" if getattr(tokenizer, "add_prefix_space", False) else " "


def unknown_id(tokenizer):
    """Returns the id of the unknown token of a tokenizer."""
    if hasattr(tokenizer, "unk_token_id"):
        return tokenizer.unk_token_id
    return tokenizer.token_to_id(getattr(tokenizer, "oov_token", "<unk>"))


def windows(lengths, room):
    """Yields slices of words that fit into a window, in order, all of them.

    A word longer than a window has one of its own.

    Args:
        lengths: Number of tokens of each word, at least 1.
        room: Most tokens of a window.
    """
    start, used = 0, 0
    for place, length in enumerate(lengths):
        if used and used + length > room:
            yield slice(start, place)
            start, used = place, 0
        used += length
    if start < len(lengths):
        yield slice(start, len(lengths))
