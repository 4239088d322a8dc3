"""Which examples make a batch, in an order that is a function of the seed."""

import dataclasses

import numpy as np

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
    costs=None,
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
        costs: What groups are sorted by, where that is not `lengths` (default):
            examples of many choices or windows belong together.
    """
    generator = np.random.default_rng([seed, epoch])
    order = generator.permutation(len(lengths))
    if batching == "fixed":
        batches = _in_buckets(order, lengths, batch_size, fixed_lengths)
        batches = _in_random_runs(batches, steps_per_loop, generator)
        return _numbered(batches, epoch + 1)
    if batching == "grouped":
        costs = lengths if costs is None else costs
        order = _sort_within_groups(order, costs, batch_size)
    batches = _cut(order, lengths, batch_size)
    if batching == "grouped":
        batches = [batches[i] for i in generator.permutation(len(batches))]
    return _numbered(batches, epoch + 1)


def plan_epoch(lengths, config, epoch, costs=None):
    """Returns one epoch's batches as a `Config` has them."""
    return plan_training(
        lengths,
        config.train.batch_size,
        config.seed,
        epoch,
        config.data.batching,
        config.data.fixed_lengths,
        config.train.steps_per_loop,
        costs,
    )


def plan_evaluation(lengths, batch_size, fixed_lengths=(), costs=None):
    """Returns batches of all examples, the longest or costliest first.

    So a batch that does not fit into memory fails at once. With `fixed_lengths`
    each has one of these lengths and `batch_size` rows.
    """
    # Fixed batches of one length follow each other.
    first = lengths if costs is None or fixed_lengths else costs
    order = np.argsort(-np.asarray(first), kind="stable")
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


def _sort_within_groups(order, costs, batch_size):
    size = batch_size * _BATCHES_PER_GROUP
    groups = [order[i : i + size] for i in range(0, len(order), size)]
    return np.concatenate(
        [group[np.argsort(-costs[group], kind="stable")] for group in groups]
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
