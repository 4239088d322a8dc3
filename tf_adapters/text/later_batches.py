"""Batches of texts that are tokenized on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import keras
import numpy as np

from tf_adapters.data.batches import batch_plan
from tf_adapters.text.batches import TextBatches

if TYPE_CHECKING:
    from tf_adapters import heads
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.text.rows import TextRows


class LaterBatches(keras.utils.PyDataset):
    """Batches of rows that are tokenized when Keras requests them.

    Texts with a similar number of characters are batched together. They are
    tokenized again in each epoch, so that memory never holds all tokens.

    Args:
        head: `Head` that makes one example from each row.
        rows: `TextRows` with labels.
        packer: `Packer`.
        batch_size: Rows per batch; the last batch may have fewer.
        seed: Integer that determines the order of each epoch, or `None`
            (default) for the order of the rows.
        weights: Array with the weight of each row's loss, or `None` (default).
        epoch: Number of the first epoch. Defaults to 0.
    """

    def __init__(
        self,
        head: heads.Head,
        rows: TextRows,
        packer: Packer,
        batch_size: int,
        seed: int | None = None,
        weights: np.ndarray | None = None,
        epoch: int = 0,
    ) -> None:
        super().__init__()
        self._head = head
        self._rows = rows
        self._packer = packer
        self._batch_size = batch_size
        self._seed = seed
        self._weights = weights
        self._characters = _characters(rows)
        self._epoch = epoch
        self._length = None
        self.plan = self._make_plan()
        self._let_lengths_differ()

    def _make_plan(self) -> list[batch_plan.Batch]:
        if self._seed is None:
            return batch_plan.plan_in_order(self._characters, self._batch_size)
        return batch_plan.plan_training(
            self._characters,
            self._batch_size,
            self._seed,
            self._epoch,
            "grouped",
        )

    def _let_lengths_differ(self) -> None:
        """Makes the first two batches differ in length, or all batches equal.

        Keras treats a dimension as constant if it is equal in the first two
        batches. The first batch is therefore padded to the maximum length. If
        the second batch has this length, too, all batches are padded to it.
        """
        longest = self._packer.max_length
        if len(self) > 1 and self[1][0]["token_ids"].shape[1] == longest:
            self._length = longest

    def on_epoch_end(self) -> None:
        self._epoch += 1
        self.plan = self._make_plan()

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, number: int) -> tuple[Any, ...]:
        places = self.plan[number].indices
        encoded = self._head.encode(
            self._rows.at(places), self._rows.fields, self._packer
        )
        (batch,) = TextBatches(
            encoded,
            len(places),
            weights=None if self._weights is None else self._weights[places],
            length=self._packer.max_length if number == 0 else self._length,
        )
        return batch


def _characters(rows: TextRows) -> np.ndarray:
    """Returns the number of characters of each row, an integer array."""
    counts = np.zeros(len(rows), "int64")
    for field in rows.fields:
        lengths = map(len, rows.columns[field])
        counts += np.fromiter(lengths, "int64", len(rows))
    return counts
