"""A head's examples before batching: token ids and targets."""

import dataclasses
from typing import Any

import numpy as np

from tf_adapters.data.tokens.windows import tokenize_windows

# In targets with one entry for each token: this position has no target.
IGNORED = -1


@dataclasses.dataclass(frozen=True)
class Masking:
    """How masked language modeling hides tokens; see `data.batches.masking`.

    Attributes:
        mask_id: Id of the mask token.
        special_ids: Ids of tokens that are never hidden.
        vocabulary_size: Random tokens are drawn from `[0, vocabulary_size)`.
        continues: Boolean array `(vocabulary_size,)`, whether a token continues
            the word before it. If set, whole words are hidden. `None` (default)
            hides single tokens.
        seed: Integer.
        is_drawn: Whether hidden tokens are drawn at random. If not, the texts
            have mask tokens themselves, and only `mask_id` is used.
    """

    mask_id: int
    special_ids: tuple[int, ...]
    vocabulary_size: int
    continues: np.ndarray | None = None
    seed: int = 0
    is_drawn: bool = True


@dataclasses.dataclass(frozen=True)
class Encoded:
    """The examples that a head makes from rows.

    An example is the unit with a loss of its own: a text, all choices of a
    question, or a window of a long text. A row can give several examples, or
    none.

    Attributes:
        token_ids: List with an entry for each example: an int32 array
            `(tokens,)`, or a list of such arrays, one for each choice or
            window. Includes special tokens.
        segment_ids: Same structure as `token_ids`, or `None` if the encoder
            takes none.
        targets: Array with one entry for each example; or a list of int32
            arrays with one entry for each token, `IGNORED` for tokens without
            a target; or `None`.
        counts: Integer array, the number of terms in the loss of each example,
            or `None` for one each. A batch's loss is the mean over its terms.
        source: Data that the head needs to map the model's outputs back to
            rows. Only the head reads it.
        masking: `Masking` for masked language modeling, in which `counts`
            tokens of each example are hidden, drawn again for each batch, or
            are mask tokens in the text. Otherwise `None`.
        is_pooled: Whether each list of arrays has the windows of one text, for
            which the model gives a single output. Defaults to `False`.
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

        At least 1, so that the mean loss of a batch without terms is 0.
        """
        if self.counts is None:
            return len(indices)
        return max(1, int(self.counts[indices].sum()))


def encoder_inputs(features):
    """Returns the encoder's inputs from a batch's features, as a dict."""
    names = ("token_ids", "padding_mask", "segment_ids")
    return {name: features[name] for name in names if name in features}


def encode_texts(rows, fields, packer, targets=None):
    """Makes an example from each row's text, or from its two texts.

    Args:
        rows: List of dicts.
        fields: One or two keys of the rows.
        packer: `TextPacker`.
        targets: Array with one entry for each row, or `None`.
    """
    texts = [[row[field] for row in rows] for field in fields]
    return Encoded(*packer.tokenize_rows(*texts), targets)


def encode_windows(rows, field, packer, windows, targets=None):
    """Makes an example from the windows of each row's text.

    Args:
        rows: List of dicts.
        field: Key of the text in a row.
        packer: `TextPacker` or `PythonPacker`.
        windows: `Windows`.
        targets: Array with one entry for each row, or `None`.
    """
    texts = [row[field] for row in rows]
    ids, segments = tokenize_windows(packer, texts, windows)
    return Encoded(ids, segments, targets, is_pooled=True)
