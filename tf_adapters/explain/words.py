"""One input of a model, and the words that its tokens form."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import itertools
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens import vocabulary
from tf_adapters.heads.explained import cannot_explain

if TYPE_CHECKING:
    from tf_adapters import heads
    from tf_adapters.data.tokens.packer import Packer


@dataclasses.dataclass(frozen=True)
class Input:
    """A text, or two texts that are read together, as a model reads them.

    Attributes:
        token_ids: `(tokens,)` int32, including special tokens.
        segment_ids: `(tokens,)` int32, or `None` if the encoder takes none.
        source: `Examples.source` of the encoded row; only the head reads it.
        words: The words, in the spelling of the tokenizer. Each special token
            is a word of its own.
        indices: `(tokens,)`. Index of the word that each token belongs to.
        is_special: `(words,)`. Whether a word is a special token.
    """

    token_ids: np.ndarray
    segment_ids: np.ndarray | None
    source: Any
    words: tuple[str, ...]
    indices: np.ndarray
    is_special: np.ndarray

    def per_word(self, values: np.ndarray, how: Any = np.sum) -> np.ndarray:
        """Combines the values of the tokens of each word.

        Args:
            values: `(..., tokens)`.
            how: NumPy function that combines them: `np.sum` (default) or
                `np.mean`.

        Returns:
            Array `(..., words)`.
        """
        columns = [
            how(values[..., self.indices == word], axis=-1)
            for word in range(len(self.words))
        ]
        return np.stack(columns, axis=-1)


def make_input(
    head: heads.Head,
    row: dict[str, Any],
    fields: Sequence[str],
    packer: Packer,
) -> Input:
    """Encodes a row as the single `Input` that a model reads.

    Args:
        head: `Head`.
        row: Dict with the texts.
        fields: Keys of the texts.
        packer: `TextPacker` or `PythonPacker`.

    Raises:
        UserError: If the head reads several inputs for the row, as for a long
            text that is split into windows, or none.
    """
    encoded = head.encode([row], fields, packer, labeled=False)
    ids = list(encoded.token_ids)
    segments = encoded.segment_ids and list(encoded.segment_ids)
    if encoded.is_pooled:
        ids, segments = ids[0], segments and segments[0]
    elif encoded.has_choices:
        raise cannot_explain(head)
    if len(ids) != 1:
        raise UserError(
            "An explanation reads one input of at most "
            f"{packer.max_length} tokens, but this row is split into "
            f"{len(ids)}. Explain a shorter text, or one with words."
        )
    words, indices, is_special = _words(ids[0], packer)
    return Input(
        np.asarray(ids[0]),
        None if segments is None else np.asarray(segments[0]),
        encoded.source,
        words,
        indices,
        is_special,
    )


def _words(
    ids: np.ndarray, packer: Packer
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Returns the attributes `words`, `indices`, `is_special` of an `Input`."""
    tokenizer = packer.tokenizer
    is_special = np.isin(ids, packer.special_ids)
    continues = vocabulary.continues_word(tokenizer)[ids] & ~is_special
    # The first token of a text begins a word, even without a space before it.
    continues[1:] &= ~is_special[:-1]
    continues[0] = False
    all_texts = vocabulary.token_texts(tokenizer, 1 + int(ids.max()))
    texts = [all_texts[token] for token in ids]
    # So does the first one of a line: byte-level BPE has tokens of line breaks.
    ends_line = np.array(["\n" in text for text in texts])
    is_blank = np.array([not text.strip() for text in texts])
    continues[1:] &= ~ends_line[:-1] | is_blank[1:]
    indices = np.cumsum(~continues) - 1
    names = vocabulary.tokens_of(tokenizer)
    word_of = vocabulary.word_of(tokenizer)
    starts = np.flatnonzero(~continues)
    words = []
    for start, end in itertools.pairwise([*starts, len(ids)]):
        tokens = [names[token] for token in ids[start:end]]
        # Special tokens are words of one token, which no rule applies to.
        is_text = not is_special[start]
        words.append(word_of(tokens) if is_text else tokens[0])
    return tuple(words), indices, is_special[starts]
