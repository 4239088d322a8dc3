"""Tokenized examples: token ids, targets, and data for making batches."""

from collections.abc import Sequence
import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.data.tokens.windows import tokenize_windows

if TYPE_CHECKING:
    import tensorflow as tf

    from tf_adapters.data.tokens.packing import TextPacker
    from tf_adapters.data.tokens.windows import Windows


# Marks tokens without a target, if targets have one entry for each token.
IGNORED = -1


@dataclasses.dataclass(frozen=True)
class Masking:
    """How tokens are masked for training; see `data.batches.masking`.

    Attributes:
        mask_id: Id of the mask token.
        special_ids: Ids of tokens that are never masked.
        vocabulary_size: Random tokens are drawn from `[0, vocabulary_size)`.
        continues: Boolean array `(vocabulary_size,)`, whether a token continues
            the word before it. If set, whole words are masked. `None` (default)
            masks single tokens.
        seed: Integer.
        is_drawn: Whether the tokens to mask are drawn at random. If not, the
            texts already contain mask tokens, and only `mask_id` is used.
    """

    mask_id: int
    special_ids: tuple[int, ...]
    vocabulary_size: int
    continues: np.ndarray | None = None
    seed: int = 0
    is_drawn: bool = True


@dataclasses.dataclass(frozen=True)
class Examples:
    """The tokenized examples that a head makes from rows.

    An example has its own loss: it is a text, all choices of a question, or a
    window of a long text. A row can give several examples, or none.

    Each list of arrays can be a ragged int32 tensor instead; see
    `pipeline.to_tensors`.

    Attributes:
        token_ids: List with an entry for each example: an int32 array
            `(tokens,)`, or a list of such arrays, one for each choice or
            window. Includes special tokens.
        segment_ids: Same structure as `token_ids`, or `None` if the encoder
            takes none.
        targets: Array with one entry for each example; or a list of int32
            arrays with one entry for each token, `IGNORED` for tokens without
            a target; or `None`.
        pad_id: Id of the padding token.
        counts: Integer array, the number of terms in each example's loss, or
            `None` if all have one. A batch's loss is the mean over its terms.
        source: Data that the head needs to map the model's outputs back to
            rows. Only the head reads it.
        masking: `Masking` for masked language modeling, otherwise `None`. In
            each example, `counts` tokens are masked. They are drawn again for
            each batch, or are the mask tokens in the text.
        is_pooled: Whether the arrays of an example are the windows of a text,
            for which the model gives a single output. Defaults to `False`.
        token_vectors: `TokenVectors` with the outputs of the encoder's frozen
            blocks for the examples, or `None` (default).
    """

    token_ids: list[Any]
    segment_ids: list[Any] | None
    targets: np.ndarray | list[Any] | None = None
    pad_id: int = dataclasses.field(kw_only=True)
    counts: np.ndarray | None = None
    source: Any = None
    masking: Masking | None = None
    is_pooled: bool = False
    token_vectors: Any = None

    def __len__(self) -> int:
        return len(_row_lengths(self.token_ids))

    @property
    def has_choices(self) -> bool:
        """Whether an example is a list of choices or windows."""
        if isinstance(self.token_ids, list):
            return bool(self.token_ids) and isinstance(self.token_ids[0], list)
        return self.token_ids.ragged_rank > 1

    @property
    def num_choices(self) -> Any:
        """Number of choices or windows of each example; 1 if it has none."""
        lengths = _row_lengths(self.token_ids)
        return lengths if self.has_choices else np.ones_like(lengths)

    @property
    def sequence_lengths(self) -> Any:
        """Number of tokens of each example, or of each of its choices.

        The shape is `(examples,)` or `(examples, choices)`. Examples with fewer
        choices than others are padded with 0.
        """
        if not self.has_choices:
            return _row_lengths(self.token_ids)
        counts = self.num_choices
        lengths = np.zeros((len(counts), counts.max(initial=0)), "int64")
        is_choice = np.arange(lengths.shape[1]) < counts[:, np.newaxis]
        lengths[is_choice] = _row_lengths(_joined(self.token_ids))
        return lengths

    @property
    def lengths(self) -> Any:
        """Number of tokens of each example, or of its longest choice."""
        lengths = self.sequence_lengths
        return lengths.max(axis=1) if self.has_choices else lengths

    @property
    def costs(self) -> Any:
        """Number of tokens of each example, including padding.

        Each choice or window counts as long as the example's longest one.
        """
        return self.lengths * self.num_choices

    def count(self, indices: Any) -> int:
        """Returns the number of loss terms of the examples in `indices`.

        It is at least 1, so that the mean loss of a batch without terms is 0.
        """
        if self.counts is None:
            return len(indices)
        return max(1, int(self.counts[indices].sum()))


def _row_lengths(rows: Any) -> Any:
    """Returns the length of each row of a list or of a ragged tensor."""
    if isinstance(rows, list):
        return np.array([len(row) for row in rows], "int64")
    return rows.row_lengths().numpy()


def _joined(rows: Any) -> Any:
    """Concatenates the rows of a nested list or of a ragged tensor."""
    if isinstance(rows, list):
        return [entry for row in rows for entry in row]
    return rows.values


def encoder_inputs(features: "dict[str, tf.Tensor]") -> dict[str, Any]:
    """Returns the encoder's inputs from a batch's features, as a dict."""
    names = ("token_ids", "padding_mask", "segment_ids")
    return {name: features[name] for name in names if name in features}


def encode_texts(
    rows: list[dict[str, Any]],
    fields: Sequence[str],
    packer: "TextPacker",
    targets: np.ndarray | None = None,
) -> "Examples":
    """Makes an example from each row's text, or from its two texts.

    Args:
        rows: List of dicts.
        fields: One or two keys of the rows.
        packer: `TextPacker`.
        targets: Array with one entry for each row, or `None`.
    """
    texts = [[row[field] for row in rows] for field in fields]
    pad_id = packer.special_tokens.pad
    token_ids, segment_ids = packer.tokenize_rows(*texts)
    return Examples(token_ids, segment_ids, targets, pad_id=pad_id)


def encode_windows(
    rows: list[dict[str, Any]],
    field: str,
    packer: "TextPacker",
    windows: "Windows",
    targets: np.ndarray | None = None,
) -> "Examples":
    """Makes one example of each row's text, cut into windows.

    Args:
        rows: List of dicts.
        field: Key of the text in a row.
        packer: `TextPacker` or `PythonPacker`.
        windows: `Windows`.
        targets: Array with one entry for each row, or `None`.
    """
    texts = [row[field] for row in rows]
    ids, segments = tokenize_windows(packer, texts, windows)
    pad_id = packer.special_tokens.pad
    return Examples(ids, segments, targets, pad_id=pad_id, is_pooled=True)
