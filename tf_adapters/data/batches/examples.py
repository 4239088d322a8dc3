"""Tokenized examples as ragged tensors, from which batches are taken."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from tf_adapters.data.encoded import Masking


@dataclasses.dataclass(frozen=True)
class Examples:
    """Tokenized texts with their targets.

    Attributes:
        token_ids: Ragged int32 tensor `(examples, tokens)` or
            `(examples, choices, tokens)`, including special tokens. Windows
            are represented like choices.
        segment_ids: Same shape as `token_ids`, or `None` if the encoder takes
            none.
        targets: Array with one entry for each example, ragged int32 tensor
            `(examples, tokens)`, or `None`.
        pad_id: Id of the padding token.
        counts: Array, the number of terms in the loss of each example. `None`
            (default) for one each.
        source: Data with which the head maps outputs to rows; see `Encoded`.
        masking: `Masking`, or `None`; see `Encoded`.
    """

    token_ids: tf.RaggedTensor
    segment_ids: tf.RaggedTensor | None
    targets: np.ndarray | tf.RaggedTensor | None
    pad_id: int
    counts: np.ndarray | None = None
    source: Any = None
    masking: Masking | None = None

    def __len__(self):
        return int(self.token_ids.nrows())

    @property
    def lengths(self):
        """Number of tokens of each example, or of its longest choice."""
        lengths = self.sequence_lengths
        return lengths if lengths.ndim == 1 else lengths.max(axis=1)

    @property
    def costs(self):
        """Number of tokens of each example if all choices are padded."""
        return self.lengths * self.num_choices

    @property
    def sequence_lengths(self):
        """Number of tokens, `(examples,)` or `(examples, choices)`.

        Examples with fewer choices than others are padded with 0.
        """
        if self.token_ids.ragged_rank == 1:
            return self.token_ids.row_lengths().numpy()
        return self.token_ids.row_lengths(axis=2).to_tensor().numpy()

    @property
    def num_choices(self):
        """Number of choices or windows of each example; 1 if it has none."""
        if self.token_ids.ragged_rank == 1:
            return np.ones(len(self), "int64")
        return self.token_ids.row_lengths().numpy()

    def count(self, indices):
        """Returns the number of terms in the loss of some examples.

        At least 1, so that the mean loss of a batch without terms is 0.
        """
        if self.counts is None:
            return len(indices)
        return max(1, int(self.counts[indices].sum()))


def to_examples(encoded, pad_id):
    """Converts a head's `Encoded` to `Examples`.

    Args:
        encoded: `data.encoded.Encoded`.
        pad_id: Id of the padding token.
    """
    segment_ids, targets = encoded.segment_ids, encoded.targets
    return Examples(
        ragged(encoded.token_ids),
        None if segment_ids is None else ragged(segment_ids),
        ragged(targets) if isinstance(targets, list) else targets,
        pad_id,
        encoded.counts,
        encoded.source,
        encoded.masking,
    )


def ragged(arrays):
    """Converts arrays, or lists of arrays, to a ragged int32 tensor."""
    outer = [len(part) for part in arrays]
    if arrays and isinstance(arrays[0], list):
        inner = ragged([array for part in arrays for array in part])
        return tf.RaggedTensor.from_row_lengths(inner, outer)
    flat = np.concatenate([*arrays, np.zeros(0, "int32")]).astype("int32")
    return tf.RaggedTensor.from_row_lengths(flat, outer)
