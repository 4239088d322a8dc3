"""Rows as a head reads them: token ids and targets, before any batch."""

import dataclasses
from typing import Any

import numpy as np

from tf_adapters.data.tokens.windows import tokenize_windows

# What fills up targets that come one a token: such a place has no target.
IGNORED = -1


@dataclasses.dataclass(frozen=True)
class Masking:
    """How masked language modelling hides tokens, see `data.masking`.

    Attributes:
        mask_id: Id of the mask token.
        special_ids: Ids that are never chosen.
        vocabulary_size: Random tokens are drawn from `[0, vocabulary_size)`.
        continues: Boolean array `(vocabulary_size,)`, whether a token goes on
            with the word before it: then whole words are chosen. `None`
            (default) chooses single tokens.
        seed: Integer.
        is_drawn: Whether hidden tokens are drawn. If not, a text itself has the
            mask token where something is asked for, and nothing else of this
            is read.
    """

    mask_id: int
    special_ids: tuple[int, ...]
    vocabulary_size: int
    continues: np.ndarray | None = None
    seed: int = 0
    is_drawn: bool = True


@dataclasses.dataclass(frozen=True)
class Encoded:
    """The examples that a head makes of rows.

    An example is what one loss belongs to: a text, all choices of a question,
    or a window of a long text. A row may become several, or none.

    Attributes:
        token_ids: List with an int32 array `(tokens,)` for each example, or a
            list of such arrays, one for each choice or window. Special tokens
            are in.
        segment_ids: The same shape, or `None` where the encoder takes none.
        targets: Array with one entry for each example; or a list of int32
            arrays with one entry for each token, `IGNORED` where there is no
            target; or `None`.
        counts: Number of terms that the loss of each example sums, an integer
            array, or `None` for one each. A batch's loss is its mean over
            terms.
        source: What the head needs to find its way back from the model's
            outputs to the rows; nobody else reads it.
        masking: `Masking` where the targets are hidden tokens, drawn anew for
            each batch, or where they are to be predicted, `counts` of each
            example; else `None`.
        is_pooled: Whether a list of arrays holds the windows of one text, whose
            number the model's output does not show. Defaults to `False`.
    """

    token_ids: list
    segment_ids: list | None
    targets: np.ndarray | list | None = None
    counts: np.ndarray | None = None
    source: Any = None
    masking: Masking | None = None
    is_pooled: bool = False

    def __len__(self):
        return len(self.token_ids)

    def count(self, indices):
        """Returns the number of terms in the loss of some examples.

        At least 1, so that a batch without any has a mean, which is 0.
        """
        if self.counts is None:
            return len(indices)
        return max(1, int(self.counts[indices].sum()))


def encoder_inputs(features):
    """Returns those of a batch's features that an encoder takes."""
    names = ("token_ids", "padding_mask", "segment_ids")
    return {name: features[name] for name in names if name in features}


def encode_texts(rows, fields, packer, targets=None):
    """Returns one example for each row, of its text or its two texts.

    Args:
        rows: List of dicts.
        fields: One or two keys of the rows.
        packer: `TextPacker`.
        targets: Array with one entry for each row, or `None`.
    """
    texts = [[row[field] for row in rows] for field in fields]
    return Encoded(*packer.tokenize_rows(*texts), targets)


def encode_windows(rows, field, packer, windows, targets=None):
    """Returns one example for each row, of the windows of its text.

    Args:
        rows: List of dicts.
        field: Key of the rows' text.
        packer: `TextPacker` or `PythonPacker`.
        windows: `Windows`.
        targets: Array with one entry for each row, or `None`.
    """
    texts = [row[field] for row in rows]
    ids, segments = tokenize_windows(packer, texts, windows)
    return Encoded(ids, segments, targets, is_pooled=True)
