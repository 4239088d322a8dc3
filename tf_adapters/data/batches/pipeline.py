"""Tokenised examples -> batches, in an order that is a function of the seed."""

import dataclasses
import math

import numpy as np
import tensorflow as tf

from tf_adapters.data.batches import masking
from tf_adapters.data.batches.examples import Examples as Examples
from tf_adapters.data.batches.examples import ragged as _ragged
from tf_adapters.data.batches.examples import to_examples as to_examples
from tf_adapters.data.encoded import IGNORED
from tf_adapters.data.tokens import mask_tokens

# Batches of one group are sorted by length; groups this many batches long
# keep the padding small and the order random enough.
_BATCHES_PER_GROUP = 50


@dataclasses.dataclass(frozen=True)
class Batch:
    """Which examples make a batch, and how far it is filled up.

    Attributes:
        indices: Places in `Examples`.
        length: Tokens of each row.
        size: Rows that the batch is filled up to, in all batches alike, or
            `None` for no more than `indices`.
        draw: Which random numbers it has: two integers, for training the
            epoch, from 1 on, and the batch's place in it.
    """

    indices: np.ndarray
    length: int
    size: int | None = None
    draw: tuple[int, int] = (0, 0)


def plan_training(
    lengths,
    batch_size,
    seed,
    epoch,
    batching,
    fixed_lengths=(),
    steps_per_loop=1,
):
    """Returns one epoch's batches, a pure function of its arguments.

    Args:
        lengths: Tokens of each example.
        batch_size: Examples in a batch; the last may have fewer, and is filled
            up where `batching` is `"fixed"`.
        seed: Integer.
        epoch: Integer.
        batching: `"grouped"`, `"random"` or `"fixed"`, see `DataConfig`.
        fixed_lengths: Lengths that batches may have where `batching` is
            `"fixed"`, ascending.
        steps_per_loop: How many batches of one such length come together.
    """
    generator = np.random.default_rng([seed, epoch])
    order = generator.permutation(len(lengths))
    if batching == "fixed":
        batches = _in_buckets(order, lengths, batch_size, fixed_lengths)
        batches = _in_random_runs(batches, steps_per_loop, generator)
        return _numbered(batches, epoch + 1)
    if batching == "grouped":
        order = _sort_within_groups(order, lengths, batch_size)
    batches = _cut(order, lengths, batch_size)
    if batching == "grouped":
        batches = [batches[i] for i in generator.permutation(len(batches))]
    return _numbered(batches, epoch + 1)


def plan_epoch(lengths, config, epoch):
    """Returns one epoch's batches as a `Config` has them."""
    return plan_training(
        lengths,
        config.train.batch_size,
        config.seed,
        epoch,
        config.data.batching,
        config.data.fixed_lengths,
        config.train.steps_per_loop,
    )


def plan_evaluation(lengths, batch_size, fixed_lengths=()):
    """Returns batches of all examples, the longest first.

    So a batch that does not fit into memory fails at once. With `fixed_lengths`
    each has one of these lengths and `batch_size` rows.
    """
    order = np.argsort(-np.asarray(lengths), kind="stable")
    batches = _cut(order, lengths, batch_size)
    if fixed_lengths:
        batches = [
            Batch(b.indices, _bucket(b.length, fixed_lengths), batch_size)
            for b in batches
        ]
    return _numbered(batches, 0)


def _numbered(batches, epoch):
    return [
        dataclasses.replace(batch, draw=(epoch, number))
        for number, batch in enumerate(batches)
    ]


def _bucket(length, fixed_lengths):
    """Returns the smallest of some lengths that is not below `length`."""
    return min(one for one in fixed_lengths if one >= length)


def _in_buckets(order, lengths, batch_size, fixed_lengths):
    """Returns lists of fixed batches, one for each length."""
    buckets = np.searchsorted(fixed_lengths, lengths[order])
    return [
        [
            Batch(batch.indices, length, batch_size)
            for batch in _cut(order[buckets == number], lengths, batch_size)
        ]
        for number, length in enumerate(fixed_lengths)
    ]


def _in_random_runs(lists, size, generator):
    """Returns the batches of all lists, up to `size` of a list in a row."""
    runs = [
        batches[i : i + size]
        for batches in lists
        for i in range(0, len(batches), size)
    ]
    # The order within a list is random already.
    if len(lists) > 1:
        runs = [runs[i] for i in generator.permutation(len(runs))]
    return [batch for run in runs for batch in run]


def _sort_within_groups(order, lengths, batch_size):
    size = batch_size * _BATCHES_PER_GROUP
    groups = [order[i : i + size] for i in range(0, len(order), size)]
    return np.concatenate(
        [group[np.argsort(-lengths[group], kind="stable")] for group in groups]
    )


def _cut(order, lengths, batch_size):
    return [
        Batch(indices, int(lengths[indices].max()))
        for indices in (
            order[i : i + batch_size] for i in range(0, len(order), batch_size)
        )
    ]


def padding_fraction(batches, lengths):
    """Returns the share of positions in `batches` that are padding.

    Args:
        batches: List of `Batch`.
        lengths: Array `(examples,)` or `(examples, choices)`, see
            `Examples.sequence_lengths` and that of `task_mixture.Mixture`.
    """
    lengths = lengths.reshape(len(lengths), -1)
    positions = tokens = 0
    for batch in batches:
        rows = lengths[batch.indices]
        # Fixed batches have room for the most choices that occur in the task.
        places = rows >= 0 if batch.size else rows > 0
        sequences = (batch.size or len(rows)) * places.any(axis=0).sum()
        positions += batch.length * int(sequences)
        tokens += int(rows.clip(0).sum())
    return 1 - tokens / positions if positions else 0.0


def dataset(examples, batches, num_shards=1, shards=(0,)):
    """Returns a `tf.data.Dataset` of feature dicts.

    Each batch is cut into `num_shards` contiguous parts, one for each replica;
    parts of a small last batch may be empty. Every element carries `weights`,
    one over the terms of the whole batch, so that sums over replicas are means
    over the batch whatever the parts' sizes.

    Batches with a `size` have one length. They are filled up to it with rows
    of weight 0, further where the replicas' parts would be unequal. All shapes
    are then static, as TPUs need them.

    Args:
        examples: `Examples`.
        batches: List of `Batch`.
        num_shards: Replicas over all workers.
        shards: Replicas that this worker feeds, in order.

    Returns:
        Elements: `token_ids`, `padding_mask`, `segment_ids` (where there are
        any) `(part, length)` int32; `targets`; `weights` `(part,)` float32;
        `indices` `(part,)` int32, the rows' places in `examples`, or -1 where
        a row only fills up.
    """
    parts, lengths, sizes, draws, choices = [], [], [], [], []
    num_choices = examples.num_choices
    for batch in batches:
        rows = _filled_up(batch, num_shards)
        pieces = np.array_split(rows, num_shards)
        for shard in shards:
            first = sum(map(len, pieces[:shard]))
            parts.append(pieces[shard])
            lengths.append(batch.length)
            sizes.append(examples.count(batch.indices))
            draws.append((*batch.draw, len(rows), first))
            choices.append(max(1, num_choices[batch.indices].max()))
    static_length = batches[0].length if batches and batches[0].size else None
    plan = tf.data.Dataset.from_tensor_slices(
        (
            np.stack(parts) if static_length else _ragged(parts),
            np.array(lengths, "int64"),
            np.array(sizes, "float32"),
            np.array(draws, "int32"),
            np.array(choices, "int64"),
        )
    )

    def features(indices, length, size, draw, choices):
        if static_length:
            length, choices = static_length, max(1, int(num_choices.max()))
        found = _features(examples, indices, length, size, choices)
        if examples.masking is None:
            return found
        return _hidden(examples, found, draw)

    # Autotuning would have nothing to tune, and ends seconds late.
    options = tf.data.Options()
    options.autotune.enabled = False
    return (
        plan.map(features, num_parallel_calls=2, deterministic=True)
        .prefetch(4)
        .with_options(options)
    )


def _filled_up(batch, num_shards):
    """Returns a batch's indices, -1 for each row that only fills it up."""
    if batch.size is None:
        return batch.indices
    rows = num_shards * math.ceil(batch.size / num_shards)
    fill = np.full(rows - len(batch.indices), -1)
    return np.concatenate([batch.indices, fill]).astype("int32")


def _features(examples, indices, length, size, num_choices):
    # What fills up is the first example: a real text, so that nothing in the
    # model becomes infinite, which a weight of 0 would not take away.
    safe_indices = tf.maximum(indices, 0)
    is_static = isinstance(length, int)
    first = indices.shape[0] if is_static else tf.size(indices, tf.int64)

    def padded(rows, value):
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
    return features


def _hidden(examples, features, draw):
    """Returns features for masked language modelling.

    See `masking.hide`, and `mask_tokens.find` for prediction.
    """
    indices = features["indices"]
    counts = tf.gather(examples.counts, tf.maximum(indices, 0))
    is_static = features["token_ids"].shape[1] is not None
    # A replica's part may be empty.
    max_chosen = tf.reduce_max(tf.concat([counts, [1]], 0))
    max_chosen = max(1, int(examples.counts.max())) if is_static else max_chosen
    if not examples.masking.is_drawn:
        return mask_tokens.find_mask_tokens(
            features, examples.masking.mask_id, max_chosen
        )
    draw = masking.Draw(*tf.unstack(draw), tf.size(indices))
    return masking.hide(examples.masking, features, counts, max_chosen, draw)
