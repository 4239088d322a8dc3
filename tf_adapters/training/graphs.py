"""Compiles Python functions to graphs and runs them."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import tensorflow as tf


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a `tf.function` that is traced for each signature of arguments.

    AutoGraph is off, so the function cannot have Python control flow that
    depends on tensors.
    """
    # Steps do not need AutoGraph, which would take seconds.
    return tf.function(function, autograph=False)


def traced_by_value(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a traced function that reads variables before it is called.

    It is traced once for all variables of the same shape and type.

    Args:
        function: Function of tensors, or of lists and dicts of tensors.
    """
    graph = traced(function)

    def call(*arguments: Any) -> Any:
        return graph(*tf.nest.map_structure(tf.convert_to_tensor, arguments))

    return call


def one_trace(
    function: Callable[..., Any],
    batches: tf.data.Dataset | tf.distribute.DistributedDataset,
) -> Callable[..., Any]:
    """Returns a `tf.function` that is traced once, for all given batches.

    Args:
        function: Function of a batch.
        batches: Data set whose `element_spec` is the function's signature.
    """
    step = tf.function(
        function, input_signature=[batches.element_spec], autograph=False
    )
    step.get_concrete_function()
    return step


class Iterators:
    """Creates iterators, and releases them in the background.

    TensorFlow may wait for two seconds while it ends an iterator's threads
    (docs/log.md). Each iterator is therefore kept until the next one is
    created. The old iterator is then no longer in use, and a background thread
    releases it.
    """

    def __init__(self) -> None:
        self._kept = []
        self._thread = futures.ThreadPoolExecutor(1)

    def over(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Returns an iterator over a data set; releases the previous one."""
        iterator = iter(batches)
        kept, self._kept = self._kept, [iterator]
        self._thread.submit(kept.clear)
        return iterator


def map_in_order(
    function: Callable[[Any], Any], items: Iterable[Any], at_once: int
) -> Iterator[Any]:
    """Yields `function(item)` for each item, in the order of the items.

    Up to `at_once` items are computed in parallel, by threads. At most
    `at_once` results wait to be consumed.
    """
    with futures.ThreadPoolExecutor(at_once) as pool:
        pending = collections.deque()
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > at_once:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
