"""Feeds the replicas of a strategy with batches of tokenized examples."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING
from typing import Any
import weakref

import tensorflow as tf

from tf_adapters.data.batches import pipeline

if TYPE_CHECKING:
    from tf_adapters.data.batches.batch_plan import Batch
    from tf_adapters.data.examples import Examples


class Inputs:
    """Makes data sets of batches for all replicas of a strategy.

    Args:
        strategy: `tf.distribute.Strategy`.
    """

    def __init__(self, strategy: tf.distribute.Strategy) -> None:
        self.strategy = strategy
        # Keyed by the id of a tensor and the number of an input pipeline.
        self._on_hosts: dict[tuple[int, int], Any] = {}

    def dataset(
        self, examples: Examples, batches: list[Batch], at_once: int = 1
    ) -> tf.data.Dataset | tf.distribute.DistributedDataset:
        """Returns an endless data set with the features of the given batches.

        Args:
            examples: `Examples` with ragged tensors.
            batches: List of `Batch`.
            at_once: Number of batches in an element; see `pipeline.dataset`.
        """
        replicas = self.strategy.num_replicas_in_sync

        def build(context: tf.distribute.InputContext) -> tf.data.Dataset:
            local = replicas // context.num_input_pipelines
            first = context.input_pipeline_id * local
            shards = range(first, first + local)
            placed = self._on_host(examples, context.input_pipeline_id)
            data = pipeline.dataset(placed, batches, replicas, shards, at_once)
            # Repeated without end, because TensorFlow would otherwise ask all
            # workers before every step whether there is another batch.
            return data.repeat()

        if isinstance(self.strategy, tf.distribute.OneDeviceStrategy):
            # There is nothing to distribute, and a distributed iterator takes
            # seconds to end: its autotuning cannot be turned off (docs/log.md).
            return build(tf.distribute.InputContext())
        return self.strategy.distribute_datasets_from_function(build)

    def _on_host(self, examples: Examples, pipeline_id: int) -> Examples:
        """Returns examples whose tokens are in the memory of a host.

        The strategy calls this in the scope of the host's device. Without it,
        TensorFlow would send all tokens to the host again for each data set:
        one per epoch and length of batches.
        """
        ragged = {
            field.name: self._placed(value, pipeline_id)
            for field in dataclasses.fields(examples)
            if isinstance(
                value := getattr(examples, field.name), tf.RaggedTensor
            )
        }
        return dataclasses.replace(examples, **ragged)

    def _placed(self, tensor: Any, pipeline_id: int) -> Any:
        """Returns a copy of a tensor on the CPU of a host, made only once.

        If the tensor is there already, its memory is shared.
        """
        key = (id(tensor), pipeline_id)
        if key not in self._on_hosts:
            # The job and the task are those of the strategy's scope.
            with tf.device("/cpu:0"):
                self._on_hosts[key] = tf.identity(tensor)
            weakref.finalize(tensor, self._on_hosts.pop, key, None)
        return self._on_hosts[key]
