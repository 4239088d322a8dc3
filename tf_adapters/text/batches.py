"""Groups tokenized examples into batches for Keras's `fit`.

Uses NumPy only, so that all Keras backends can train on them.
"""

from typing import Any

import keras
import numpy as np

from tf_adapters.data.batches import batch_plan
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.examples import Examples

# Padded lengths for backends that compile a program for each length.
_COMPILED_LENGTHS = (16, 32, 64, 128, 256, 512)


class TextBatches(keras.utils.PyDataset):
    """Batches of `Examples`, grouped by length.

    Args:
        encoded: `Examples`, with targets for training.
        batch_size: Examples per batch; the last batch may have fewer.
        seed: Integer that determines the order of each epoch, or `None`
            (default) for no shuffling.
        weights: Array with the weight of each example's loss, or `None`
            (default).
        length: Length to pad all rows to, or `None` (default) for the longest
            row of each batch.
        in_order: Whether to keep the order of the examples if `seed` is `None`.
            If `False` (default), the longest come first, as in evaluation.
        epoch: Number of the first epoch. Defaults to 0.
    """

    def __init__(
        self,
        encoded: Examples,
        batch_size: int,
        seed: int | None = None,
        weights: np.ndarray | None = None,
        length: int | None = None,
        in_order: bool = False,
        epoch: int = 0,
    ) -> None:
        super().__init__()
        self.encoded = encoded
        self._batch_size = batch_size
        self._seed = seed
        self._weights = weights
        self._lengths = encoded.lengths
        self._counts = encoded.num_choices
        self._epoch = epoch
        self._in_order = in_order
        self._length = length
        self.plan = self._make_plan()
        self._let_lengths_differ()

    def _let_lengths_differ(self) -> None:
        """Makes the first two batches differ in length if any batches do.

        Keras treats a dimension as constant if it is equal in the first two
        batches.
        """
        lengths = [batch.length for batch in self.plan]
        counts = [self._num_sequences(batch) for batch in self.plan]
        if len(set(lengths)) == 1 and self._length is None:
            self._length = _padded_length(lengths[0])
        are_equal = len(set(lengths)) > 1 and lengths[0] == lengths[1]
        if are_equal and self._seed is None and self._in_order:
            self._length = _padded_length(max(lengths))
        elif are_equal:
            other = next(i for i, n in enumerate(lengths) if n != lengths[0])
            plan = self.plan
            plan[1], plan[other] = plan[other], plan[1]
        self._has_further_window = len(set(counts)) > 1 and self._num_sequences(
            self.plan[0]
        ) == self._num_sequences(self.plan[1])

    def _make_plan(self) -> list[batch_plan.Batch]:
        costs = self.encoded.costs
        if self._seed is None and self._in_order:
            return batch_plan.plan_in_order(self._lengths, self._batch_size)
        if self._seed is None:
            return batch_plan.plan_evaluation(
                self._lengths, self._batch_size, costs=costs
            )
        return batch_plan.plan_training(
            self._lengths,
            self._batch_size,
            self._seed,
            self._epoch,
            "grouped",
            costs=costs,
        )

    def on_epoch_end(self) -> None:
        self._epoch += 1
        # Keras also calls this after `predict`, but putting outputs back in
        # order needs the plan that they were computed with.
        if self._seed is not None:
            self.plan = self._make_plan()

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, number: int) -> tuple[Any, ...]:
        batch = self.plan[number]
        features = self.features(batch)
        if self.encoded.targets is None:
            return (features,)
        return features, self._targets(batch), self._weights_of(batch)

    def features(self, batch: batch_plan.Batch) -> dict[str, np.ndarray]:
        """Returns a dict from name to array: a `Batch`'s padded features."""
        ids = [self.encoded.token_ids[i] for i in batch.indices]
        features = {
            "token_ids": self._padded(batch, ids, self.encoded.pad_id),
            "padding_mask": self._padded(batch, [_ones(row) for row in ids], 0),
        }
        if self.encoded.segment_ids is not None:
            segments = [self.encoded.segment_ids[i] for i in batch.indices]
            features["segment_ids"] = self._padded(batch, segments, 0)
        return features

    def _padded(
        self, batch: batch_plan.Batch, rows: list[Any], value: int
    ) -> np.ndarray:
        """Returns the rows of a batch as an int32 array, padded with `value`.

        An element of `rows` is a sequence or, for several windows or choices, a
        list of sequences.
        """
        length = self._length or _padded_length(batch.length)
        if not isinstance(rows[0], list):
            array = np.full((len(rows), length), value, "int32")
            for place, row in enumerate(rows):
                array[place, : len(row)] = row
            return array
        count = self._num_sequences(batch)
        if self._has_further_window and batch is self.plan[1]:
            count += 1
        array = np.full((len(rows), count, length), value, "int32")
        for place, choices in enumerate(rows):
            for number, row in enumerate(choices):
                array[place, number, : len(row)] = row
        return array

    def _num_sequences(self, batch: batch_plan.Batch) -> int:
        """Returns the number of choices or windows to which rows are padded."""
        if not self.encoded.is_pooled:
            # Each sequence has an output, and Keras concatenates the outputs of
            # all batches, so all rows need the same number of sequences.
            return max(self._counts, default=1)
        return _padded_count(self._counts[batch.indices].max())

    def _targets(self, batch: batch_plan.Batch) -> np.ndarray:
        targets: Any = self.encoded.targets
        if not isinstance(targets, list):
            return targets[batch.indices]
        rows = [targets[i] for i in batch.indices]
        return self._padded(batch, rows, IGNORED)

    def _weights_of(self, batch: batch_plan.Batch) -> np.ndarray:
        """Returns the weight of the loss of each row in a batch.

        Keras averages the losses of rows. With these weights, the result is the
        average of all loss terms. In tagging, a row has a term for each word.
        """
        weights = np.ones(len(batch.indices), "float32")
        if self._weights is not None:
            weights = weights * self._weights[batch.indices]
        if self.encoded.counts is not None:
            terms = max(1, self.encoded.counts[batch.indices].sum())
            weights = weights * len(batch.indices) / terms
        return weights.astype("float32")


def _ones(row: np.ndarray | list[np.ndarray]) -> np.ndarray | list[np.ndarray]:
    if isinstance(row, list):
        return [np.ones_like(one) for one in row]
    return np.ones_like(row)


def _padded_length(length: int) -> int:
    if keras.backend.backend() == "tensorflow":
        return length
    return next((n for n in _COMPILED_LENGTHS if n >= length), length)


def _padded_count(count: int) -> int:
    if keras.backend.backend() == "tensorflow":
        return int(count)
    # Round up to a power of two, so that few programs are compiled.
    return 1 << (int(count) - 1).bit_length()
