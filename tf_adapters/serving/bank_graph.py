"""Makes the graph that computes the outputs of a bank."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from typing import Any

import tensorflow as tf

if TYPE_CHECKING:
    from collections.abc import Callable

    from tf_adapters.models.bank_model import BankModel


class BankGraph:
    """Makes the graph of a bank, once for each generation of its variables.

    Several threads may use it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = -1
        self._graph: Callable[..., Any] | None = None

    def of(self, bank: BankModel) -> Callable[..., Any]:
        """Returns a function that maps features to the bank's outputs."""
        with self._lock:
            generation = bank.generation
            if self._graph is None or generation != self._generation:
                self._graph, self._generation = _graph_of(bank), generation
            return self._graph


def _graph_of(bank: BankModel) -> Callable[..., Any]:
    shapes = {
        name: tf.TensorSpec(shape, tf.int32, name)
        for name, shape in bank.feature_shapes().items()
    }
    return tf.function(
        lambda features: bank(features, training=False),
        input_signature=[shapes],
        autograph=False,
    )
