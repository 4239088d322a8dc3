"""Windows of long sentences, which are split between words."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import itertools
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.data.examples import IGNORED
from tf_adapters.data.tokens.words import tokenize_words
from tf_adapters.data.tokens.words import windows

if TYPE_CHECKING:
    from tf_adapters.data.tokens.packer import Packer


@dataclasses.dataclass(frozen=True)
class Window:
    """A model input: successive words of a sentence.

    Attributes:
        row: Index of the row.
        part: Slice of the row's words.
        token_ids: Token ids of the input, including special tokens.
        firsts: Indices in the input of the first token of each word.
    """

    row: int
    part: slice
    token_ids: np.ndarray
    firsts: np.ndarray

    def targets(self, labels: list[int]) -> np.ndarray:
        """Returns an array with the target of each token of the input.

        The first token of a word has the word's class id, and all other tokens
        have `IGNORED`.

        Args:
            labels: Class ids of all words in the row.
        """
        targets = np.full(len(self.token_ids), IGNORED, "int32")
        targets[self.firsts] = labels[self.part]
        return targets


@dataclasses.dataclass(frozen=True)
class WindowSource:
    """The rows of a dataset, and all their windows.

    Attributes:
        rows: List of dicts.
        windows: List of `Window`s, in the order of the rows.
    """

    rows: list[dict[str, Any]]
    windows: list[Window]


def make_window_source(
    rows: list[dict[str, Any]], field: str, packer: Packer
) -> WindowSource:
    """Tokenizes sentences, and splits each into as many windows as it needs.

    Args:
        rows: List of dicts.
        field: Key of the list of words.
        packer: `Packer`.
    """
    words = [word for row in rows for word in row[field]]
    tokens = iter(tokenize_words(packer, words))
    found = []
    for place, row in enumerate(rows):
        of_row = list(itertools.islice(tokens, len(row[field])))
        for part in windows(_lengths(of_row), packer.max_length - 2):
            ids, firsts = _packed(of_row[part], packer)
            found.append(Window(place, part, ids, firsts))
    return WindowSource(rows, found)


def _lengths(tokens: Sequence[np.ndarray]) -> list[int]:
    """Returns the number of tokens of each word."""
    return [len(word) for word in tokens]


def _packed(
    words: list[np.ndarray], packer: Packer
) -> tuple[np.ndarray, np.ndarray]:
    """Returns a window's token ids, and the index of each word's first token.

    A word can be cut off only if it is the only word of its window.

    Args:
        words: List with the token ids of each word.
        packer: `Packer`.
    """
    lengths = _lengths(words)
    firsts = 1 + np.cumsum([0, *lengths[:-1]])
    inside = np.concatenate(words)[: packer.max_length - 2]
    special = packer.special_tokens
    return np.concatenate([[special.start], inside, [special.end]]).astype(
        "int32"
    ), firsts
