"""Makes a `tf.data.Dataset` from tokenized examples and a plan of batches."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import math
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import tensorflow as tf

from tf_adapters.data.batches import masking
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.tokens import mask_tokens

if TYPE_CHECKING:
    from tf_adapters.data.batches.batch_plan import Batch
    from tf_adapters.data.examples import Examples


def to_tensors(examples: Examples) -> Examples:
    """Returns `Examples` with ragged tensors instead of lists.

    Args:
        examples: `Examples` with lists, as from a head.
    """
    lists = {
        name: getattr(examples, name)
        for name in ("token_ids", "segment_ids", "targets")
    }
    tensors = {k: ragged(v) for k, v in lists.items() if isinstance(v, list)}
    return dataclasses.replace(examples, **tensors)


def ragged(arrays: Any) -> Any:
    """Converts arrays, or lists of arrays, to a ragged int32 tensor."""
    outer = [len(part) for part in arrays]
    if arrays and isinstance(arrays[0], list):
        inner = ragged([array for part in arrays for array in part])
        return tf.RaggedTensor.from_row_lengths(inner, outer)
    flat = np.concatenate([*arrays, np.zeros(0, "int32")]).astype("int32")
    return tf.RaggedTensor.from_row_lengths(flat, outer)


def dataset(
    examples: Any,
    batches: Sequence[Batch],
    num_shards: int = 1,
    shards: Sequence[Any] = (0,),
    at_once: int = 1,
) -> Any:
    """Returns a `tf.data.Dataset` of feature dicts.

    Each batch is split into `num_shards` contiguous parts, one for each
    replica. Parts of a small last batch can be empty. The `weights` of an
    element are one over the number of loss terms in the whole batch, so that
    sums over replicas are means over the batch, whatever the sizes of the
    parts.

    A batch with a `size` is padded to this size with rows of weight 0. More
    such rows are added if the replicas' parts would have unequal sizes. All
    shapes are then static, as TPUs require.

    Args:
        examples: `Examples` from `to_tensors`.
        batches: List of `Batch`.
        num_shards: Number of replicas over all workers.
        shards: Indices of the replicas that this worker feeds, in order.
        at_once: Number of consecutive batches that are stacked, on a new first
            axis of each feature, for loops on the device. If it is not 1, the
            batches must have a `size`, and their number must be divisible by
            it. Default: 1, which adds no axis.

    Returns:
        Dataset with an element for each batch and each of `shards`, a dict:
        `token_ids`, `padding_mask` and, if the examples have them,
        `segment_ids`, int32 `(part, length)` or `(part, choices, length)`;
        `targets`, if there are any; `weights`, float32 `(part,)`; and
        `indices`, int32 `(part,)`, the rows' indices in `examples`, or -1 for
        padding. With masked language modeling, also the features of
        `masking.hide`.
    """
    parts, lengths, sizes, draws, choices = [], [], [], [], []
    num_choices, text_lengths = examples.num_choices, examples.lengths
    for batch, shard in _in_order(batches, shards, at_once):
        rows = _filled_up(batch, num_shards)
        pieces = np.array_split(rows, num_shards)
        parts.append(pieces[shard])
        lengths.append(batch.length)
        sizes.append(examples.count(batch.indices))
        first = sum(map(len, pieces[:shard]))
        longest = text_lengths[batch.indices].max(initial=0)
        draws.append((*batch.draw, len(rows), first, longest))
        choices.append(num_choices[batch.indices].max(initial=1))
    static_length = batches[0].length if batches and batches[0].size else None
    plan = tf.data.Dataset.from_tensor_slices(
        (
            np.stack(parts) if static_length else ragged(parts),
            np.array(lengths, "int64"),
            np.array(sizes, "float32"),
            np.array(draws, "int32"),
            np.array(choices, "int64"),
        )
    )

    def features(
        indices: Any, length: Any, size: Any, draw: Any, choices: Any
    ) -> Any:
        if static_length:
            length, choices = static_length, max(1, int(num_choices.max()))
        found = _features(examples, indices, length, size, choices)
        if examples.masking is None:
            return found
        return _hidden(examples, found, draw)

    # Autotuning has nothing to tune here, and takes seconds to stop.
    options = tf.data.Options()
    options.autotune.enabled = False
    data = plan.map(features, num_parallel_calls=2, deterministic=True)
    if at_once > 1:
        data = data.batch(at_once, drop_remainder=True)
    return data.prefetch(4).with_options(options)


def _in_order(
    batches: Sequence[Batch], shards: Sequence[Any], at_once: int
) -> Iterator[tuple[Batch, Any]]:
    """Yields each batch with each shard, in the order of the data set."""
    for start in range(0, len(batches), at_once):
        for shard in shards:
            for batch in batches[start : start + at_once]:
                yield batch, shard


def _filled_up(batch: Batch, num_shards: int) -> np.ndarray:
    """Returns a batch's indices, with -1 for each row of padding."""
    if batch.size is None:
        return batch.indices
    rows = num_shards * math.ceil(batch.size / num_shards)
    fill = np.full(rows - len(batch.indices), -1)
    return np.concatenate([batch.indices, fill]).astype("int32")


def _features(
    examples: Examples, indices: Any, length: Any, size: Any, num_choices: Any
) -> dict[str, Any]:
    # Padding rows repeat the first example: a real text gives finite outputs,
    # and not even a weight of 0 could cancel an infinite output.
    safe_indices = tf.maximum(indices, 0)
    is_static = isinstance(length, int)
    first = indices.shape[0] if is_static else tf.size(indices, tf.int64)

    def padded(rows: Any, value: Any) -> Any:
        shape = [first, length]
        if rows.ragged_rank == 2:
            shape[1:1] = [num_choices]
        shape = shape if is_static else tf.stack(shape)
        return rows.to_tensor(value, shape=shape)

    token_ids = tf.gather(examples.token_ids, safe_indices)
    features = {
        "token_ids": padded(token_ids, examples.pad_id),
        "padding_mask": padded(tf.ones_like(token_ids), 0),
        "weights": tf.where(indices >= 0, 1 / size, 0.0),
        "indices": indices,
    }
    if examples.segment_ids is not None:
        features["segment_ids"] = padded(
            tf.gather(examples.segment_ids, safe_indices), 0
        )
    if examples.targets is not None:
        targets = tf.gather(examples.targets, safe_indices)
        if isinstance(targets, tf.RaggedTensor):
            targets = padded(targets, IGNORED)
        features["targets"] = targets
    if examples.token_vectors is not None:
        vectors = _token_vectors(examples.token_vectors, safe_indices, length)
        features[examples.token_vectors.name] = vectors
    return features


def _token_vectors(vectors: Any, indices: Any, length: Any) -> tf.Tensor:
    """Reads the vectors of a batch's tokens, `(part, length, width)`."""
    found = tf.numpy_function(vectors.read, [indices, length], vectors.dtype)
    length = length if isinstance(length, int) else None
    return tf.ensure_shape(found, [indices.shape[0], length, vectors.width])


def _hidden(
    examples: Examples, features: dict[str, tf.Tensor], draw: Any
) -> dict[str, Any]:
    """Masks tokens of a batch, or finds the mask tokens in its texts.

    See `masking.hide` and `mask_tokens.find_mask_tokens`.
    """
    indices = features["indices"]
    rule: Any = examples.masking
    all_counts: Any = examples.counts
    counts = tf.gather(all_counts, tf.maximum(indices, 0))
    length = features["token_ids"].shape[1]
    # At least 1: a replica's part can be empty.
    max_chosen = tf.reduce_max(tf.concat([counts, [1]], 0))
    if length is not None:
        # The examples with more masks than this are in longer batches.
        max_chosen = min(length, max(1, int(all_counts.max())))
    if not rule.is_drawn:
        return mask_tokens.find_mask_tokens(features, rule.mask_id, max_chosen)
    epoch, number, rows, first, longest = tf.unstack(draw)
    size = tf.size(indices)
    draw = masking.Draw(epoch, number, rows, first, size, longest)
    return masking.hide(rule, features, counts, max_chosen, draw)
