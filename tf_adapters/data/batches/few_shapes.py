"""Pads batches to few shapes, for backends that compile each shape."""

from collections.abc import Iterable
import dataclasses

import numpy as np

from tf_adapters.data.batches.batch_plan import Batch

# Lengths are rounded up to a multiple of this number of tokens.
MULTIPLE = 32


def pad_batches(
    batches: Iterable[Batch], rows: int, lengths: np.ndarray
) -> list[Batch]:
    """Pads batches to the same number of rows, and to few lengths.

    Args:
        batches: Batches of a plan. The length of a batch with a fixed size does
            not change.
        rows: Number of rows of each batch, including padding.
        lengths: Number of tokens of each example. The length of a batch is not
            rounded up beyond the longest one.
    """
    longest = int(max(lengths, default=0))
    padded = []
    for batch in batches:
        length = batch.length
        if not batch.size:
            length = min(longest, length + -length % MULTIPLE)
        padded.append(dataclasses.replace(batch, size=rows, length=length))
    return padded
