"""Makes the features of a batch as NumPy arrays, without TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tf_adapters.data.examples import IGNORED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tf_adapters.data.batches.batch_plan import Batch
    from tf_adapters.data.examples import Examples


def features(examples: Examples, batch: Batch) -> dict[str, np.ndarray]:
    """Returns the features of a batch; see `pipeline.dataset`.

    Args:
        examples: `Examples` with lists, of one text or pair each, without
            masking.
        batch: `Batch` with a `size`.
    """
    size = batch.size or len(batch.indices)
    padding = np.full(size - len(batch.indices), -1)
    indices = np.concatenate([batch.indices, padding]).astype("int32")
    # As in `pipeline`, rows of padding repeat the first example.
    safe = np.maximum(indices, 0)
    token_ids = [examples.token_ids[i] for i in safe]
    weight = 1 / np.float32(examples.count(batch.indices))
    found = {
        "token_ids": _padded(token_ids, batch.length, examples.pad_id),
        "padding_mask": _padded(
            [np.ones_like(ids) for ids in token_ids], batch.length, 0
        ),
        "weights": np.where(indices >= 0, weight, np.float32(0)),
        "indices": indices,
    }
    if examples.segment_ids is not None:
        segments = [examples.segment_ids[i] for i in safe]
        found["segment_ids"] = _padded(segments, batch.length, 0)
    targets = examples.targets
    if isinstance(targets, list):
        own = [targets[i] for i in safe]
        found["targets"] = _padded(own, batch.length, IGNORED)
    elif targets is not None:
        found["targets"] = targets[safe]
    return found


def _padded(rows: Sequence[np.ndarray], length: int, value: int) -> np.ndarray:
    """Returns rows of integers as an array `(rows, length)`."""
    padded = np.full((len(rows), length), value, "int32")
    for place, row in zip(padded, rows, strict=True):
        place[: len(row)] = row
    return padded
