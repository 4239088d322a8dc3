"""Python functions as graphs, traced no more often than they must be."""

import collections
from concurrent import futures

import tensorflow as tf


def traced(function):
    """Returns a `tf.function`, traced once for each kind of its arguments."""
    # Nothing in a step is Python's control flow; to look for it takes seconds.
    return tf.function(function, autograph=False)


def one_trace(function, batches):
    """Returns a `tf.function`, traced here, once, for batches of any size."""
    step = tf.function(
        function, input_signature=[batches.element_spec], autograph=False
    )
    step.get_concrete_function()
    return step


class Iterators:
    """Makes iterators, and lets go of them where nobody waits for it.

    TensorFlow takes up to two idle seconds to end the threads of one
    (docs/log.md). Each is kept until the next one is made, when whoever used it
    has let go of it, and then ends in a thread.
    """

    def __init__(self):
        self._kept = []
        self._thread = futures.ThreadPoolExecutor(1)

    def over(self, batches):
        """Returns an iterator over a data set."""
        iterator = iter(batches)
        kept, self._kept = self._kept, [iterator]
        self._thread.submit(kept.clear)
        return iterator


def map_in_order(function, items, at_once):
    """Yields `function(item)` in order, computing `at_once` of them together.

    No more than `at_once` results wait to be taken.
    """
    with futures.ThreadPoolExecutor(at_once) as pool:
        pending = collections.deque()
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > at_once:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
