"""Plans which examples form a batch. Equal seeds give equal plans."""

from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np

# Examples are sorted by length within groups of this many batches. This keeps
# padding low and the order random enough.
_BATCHES_PER_GROUP = 50


@dataclasses.dataclass(frozen=True)
class Batch:
    """The examples of a batch, and the shape to which it is padded.

    Attributes:
        indices: Indices into `Examples`.
        length: Number of tokens of each row, including padding.
        size: Number of rows, including padding, the same in all batches.
            `None` (default) adds no rows.
        draw: Two integers that select the batch's random numbers: the epoch,
            which counts from 1 in training and is 0 in evaluation, and the
            batch's index in the epoch.
    """

    indices: np.ndarray
    length: int
    size: int | None = None
    draw: tuple[int, int] = (0, 0)


def plan_training(
    lengths: np.ndarray,
    batch_size: int,
    seed: int,
    epoch: int,
    batching: str,
    fixed_lengths: Sequence[int] = (),
    steps_per_loop: int = 1,
    costs: np.ndarray | None = None,
) -> "list[Batch]":
    """Returns the training batches of an epoch, a list of `Batch`.

    The result depends on the arguments only.

    Args:
        lengths: Array, the number of tokens of each example.
        batch_size: Number of examples in a batch. The last batch can have
            fewer; with `batching="fixed"` it is padded.
        seed: Integer.
        epoch: Integer, 0 for the first.
        batching: `"grouped"`, `"random"` or `"fixed"`; see `DataConfig`.
        fixed_lengths: With `batching="fixed"`, the possible lengths of a
            batch, ascending.
        steps_per_loop: With `batching="fixed"`, the number of consecutive
            batches of the same length.
        costs: Array, the cost of each example. Groups are sorted by cost, so
            that examples with many choices or windows share a batch. Defaults
            to `lengths`.
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


def plan_evaluation(
    lengths: Any,
    batch_size: int,
    fixed_lengths: Sequence[int] = (),
    costs: np.ndarray | None = None,
) -> "list[Batch]":
    """Returns evaluation batches of all examples, the most costly first.

    Evaluation then fails at once if a batch does not fit into memory. With
    `fixed_lengths`, each batch has one of these lengths and `batch_size` rows.
    See `plan_training` for the arguments.
    """
    # Sorting by length keeps fixed batches of the same length together.
    first = lengths if costs is None or fixed_lengths else costs
    order = np.argsort(-np.asarray(first), kind="stable")
    batches = _cut(order, lengths, batch_size)
    if fixed_lengths:
        batches = [
            Batch(b.indices, _bucket(b.length, fixed_lengths), batch_size)
            for b in batches
        ]
    return _numbered(batches, 0)


def plan_in_order(lengths: Any, batch_size: int) -> "list[Batch]":
    """Returns batches of all examples in their given order.

    See `plan_training` for the arguments.
    """
    return _numbered(_cut(np.arange(len(lengths)), lengths, batch_size), 0)


def few_lengths(max_length: int) -> tuple[int, ...]:
    """Returns up to four lengths, the quarters of `max_length`, ascending.

    All but `max_length` itself are rounded up to multiples of 8.
    """
    quarters = (8 * -(-max_length * part // 32) for part in (1, 2, 3))
    shorter = {length for length in quarters if length < max_length}
    return (*sorted(shorter), max_length)


def in_fixed_shapes(
    batches: "list[Batch]", batch_size: int, fixed_lengths: Sequence[int]
) -> "list[Batch]":
    """Returns the same batches, padded to a few shapes.

    Each batch gets `batch_size` rows, and the smallest of the fixed lengths
    that holds it. A longer batch keeps its own length.
    """
    return [
        dataclasses.replace(
            batch,
            length=min(
                (one for one in fixed_lengths if one >= batch.length),
                default=batch.length,
            ),
            size=batch_size,
        )
        for batch in batches
    ]


def _numbered(batches: list[Batch], epoch: int) -> "list[Batch]":
    return [
        dataclasses.replace(batch, draw=(epoch, number))
        for number, batch in enumerate(batches)
    ]


def _bucket(length: Any, fixed_lengths: Sequence[int]) -> Any:
    """Returns the smallest of the fixed lengths that is at least `length`."""
    return min(one for one in fixed_lengths if one >= length)


def _in_buckets(
    order: Any, lengths: Any, batch_size: int, fixed_lengths: Sequence[int]
) -> "list[list[Batch]]":
    """Returns one list of batches for each of the fixed lengths.

    Examples are in the list of the smallest fixed length that they fit into.
    """
    buckets = np.searchsorted(fixed_lengths, lengths[order])
    return [
        [
            Batch(batch.indices, length, batch_size)
            for batch in _cut(order[buckets == number], lengths, batch_size)
        ]
        for number, length in enumerate(fixed_lengths)
    ]


def _in_random_runs(
    lists: Any, size: Any, generator: np.random.Generator
) -> list[Any]:
    """Cuts each list of batches into runs, and shuffles the runs.

    A run has up to `size` batches. Returns the batches of all runs in one list.
    """
    runs = [
        batches[i : i + size]
        for batches in lists
        for i in range(0, len(batches), size)
    ]
    # The order within a list is random already.
    if len(lists) > 1:
        runs = [runs[i] for i in generator.permutation(len(runs))]
    return [batch for run in runs for batch in run]


def _sort_within_groups(
    order: Any, costs: np.ndarray, batch_size: int
) -> np.ndarray:
    size = batch_size * _BATCHES_PER_GROUP
    groups = [order[i : i + size] for i in range(0, len(order), size)]
    return np.concatenate(
        [group[np.argsort(-costs[group], kind="stable")] for group in groups]
    )


def _cut(order: Any, lengths: Any, batch_size: int) -> "list[Batch]":
    return [
        Batch(indices, int(lengths[indices].max()))
        for indices in (
            order[i : i + batch_size] for i in range(0, len(order), batch_size)
        )
    ]


def padding_fraction(batches: Sequence[Batch], lengths: np.ndarray) -> float:
    """Returns the share of positions in `batches` that are padding.

    Args:
        batches: List of `Batch`.
        lengths: Array `(examples,)` or `(examples, choices)`; see
            `Examples.sequence_lengths` and `Mixture.sequence_lengths`.
    """
    lengths = lengths.reshape(len(lengths), -1)
    positions = tokens = 0
    for batch in batches:
        rows = lengths[batch.indices]
        # In fixed batches, each row has its task's largest number of choices.
        places = rows >= 0 if batch.size else rows > 0
        sequences = (batch.size or len(rows)) * places.any(axis=0).sum()
        positions += batch.length * int(sequences)
        tokens += int(rows.clip(0).sum())
    return 1 - tokens / positions if positions else 0.0
