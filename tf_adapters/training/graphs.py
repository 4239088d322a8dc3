"""Compiles Python functions to graphs and runs them."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import tensorflow as tf


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a `tf.function`, traced once for each kind of arguments."""
    # Steps have no Python control flow, and AutoGraph would take seconds.
    return tf.function(function, autograph=False)


def one_trace(
    function: Callable[..., Any],
    batches: tf.data.Dataset | tf.distribute.DistributedDataset,
) -> Callable[..., Any]:
    """Returns a `tf.function`, traced once for batches of any size."""
    step = tf.function(
        function, input_signature=[batches.element_spec], autograph=False
    )
    step.get_concrete_function()
    return step


class Iterators:
    """Creates iterators, and releases them in the background.

    TensorFlow may take two idle seconds to end an iterator's threads
    (docs/log.md). Each iterator is therefore kept until the next one is
    created, when it is no longer in use, and then released in a thread.
    """

    def __init__(self) -> None:
        self._kept = []
        self._thread = futures.ThreadPoolExecutor(1)

    def over(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Returns an iterator over a data set."""
        iterator = iter(batches)
        kept, self._kept = self._kept, [iterator]
        self._thread.submit(kept.clear)
        return iterator


def map_in_order(
    function: Callable[[Any], Any], items: Iterable[Any], at_once: int
) -> Iterator[Any]:
    """Yields `function(item)` in order, computing `at_once` items in parallel.

    At most `at_once` results are waiting to be consumed.
    """
    with futures.ThreadPoolExecutor(at_once) as pool:
        pending = collections.deque()
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > at_once:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
