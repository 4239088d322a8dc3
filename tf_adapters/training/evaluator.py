"""Computes a function of all examples, under any strategy."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from typing import TYPE_CHECKING
from typing import Any

import tensorflow as tf

from tf_adapters.common import progress_bar
from tf_adapters.data.batches import pipeline
from tf_adapters.layers import shared_graphs
from tf_adapters.layers.shared_graphs import SharedGraphs
from tf_adapters.training import device_loops
from tf_adapters.training import graphs
from tf_adapters.training.train_step import without

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterable
    from collections.abc import Iterator

    import numpy as np

    from tf_adapters.data.batches.batch_plan import Batch
    from tf_adapters.data.examples import Examples
    from tf_adapters.training.compilation import Compiler
    from tf_adapters.training.half_kernels import HalfKernels
    from tf_adapters.training.inputs import Inputs

# Features of a batch that are not inputs of the model.
_NOT_INPUTS = ("indices", "weights")


class Evaluator:
    """Computes a function of each batch of a plan, such as a model's outputs.

    Args:
        strategy: `tf.distribute.Strategy`.
        inputs: `Inputs` of the strategy.
        compiler: `Compiler` for the function.
        steps_per_loop: Largest number of batches in a call to the device. Only
            batches with a `size` are computed several in a call.
        half_kernels: `HalfKernels` of the function's model.
    """

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        inputs: Inputs,
        compiler: Compiler,
        steps_per_loop: int,
        half_kernels: HalfKernels,
    ) -> None:
        self.strategy = strategy
        self._half_kernels = half_kernels
        self._inputs = inputs
        self._compiler = compiler
        self._steps_per_loop = steps_per_loop
        self._iterators = graphs.Iterators()
        self._steps = {}
        self._block_graphs = None
        if not compiler.is_on:
            self._block_graphs = SharedGraphs(graphs.traced_by_value, ())

    def compute(
        self,
        function: Callable[[dict[str, tf.Tensor]], tf.Tensor],
        examples: Examples,
        plan: list[Batch],
        title: str | None = None,
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the index and the output of each example of this process.

        Args:
            function: Function of the inputs of a batch that returns the
                outputs; see `Trainer.compute`.
            examples: `Examples`.
            plan: List of `Batch` with all examples. Batches of the same length
                are next to each other.
            title: See `Trainer.predict`.
        """
        self._half_kernels.refresh()
        groups = itertools.groupby(plan, lambda one: (one.length, one.size))
        with progress_bar.progress_bar(
            len(plan), title, unit="batch", delay=progress_bar.DELAY
        ) as bar:
            for (_, size), batches in groups:
                batches = list(batches)
                at_once = 1
                if size:
                    at_once = self._num_at_once(function, examples, batches)
                step, features = self.evaluation(
                    function, examples, batches, at_once
                )
                calls = math.ceil(len(batches) / at_once)
                features = itertools.islice(features, calls)
                for outputs, indices in self.eval_steps(step, features):
                    yield from self._examples_of(outputs, indices)
                    bar.update(min(at_once, len(plan) - bar.n))

    def _num_at_once(
        self,
        function: Callable[[dict[str, tf.Tensor]], tf.Tensor],
        examples: Examples,
        batches: list[Batch],
    ) -> int:
        """Returns the number of batches to compute in one device call.

        See `compute` for the arguments. The batches have the same shape.
        """
        most = min(self._steps_per_loop, len(batches))
        if most == 1:
            return 1
        data = pipeline.dataset(_unlabeled(examples), batches[:1])
        inputs = without(data.element_spec, _NOT_INPUTS)
        return device_loops.num_batches(function, inputs, most)

    def _examples_of(
        self, outputs: Any, indices: Any
    ) -> Iterator[tuple[int, np.ndarray]]:
        rows = zip(
            self._gathered(indices), self._gathered(outputs), strict=True
        )
        # Padding rows have index -1.
        return ((index, row) for index, row in rows if index >= 0)

    def evaluation(
        self,
        function: Callable[[dict[str, tf.Tensor]], tf.Tensor],
        examples: Examples,
        batches: list[Batch],
        at_once: int = 1,
    ) -> tuple[Callable[..., Any], Iterator[Any]]:
        """Returns an evaluation step, and the features of the given batches.

        `compute` calls `HalfKernels.refresh` before.

        Args:
            function: See `compute`.
            examples: `Examples`. Their targets are not used.
            batches: List of `Batch` with equal shapes.
            at_once: Number of batches in one device call, which must then have
                a `size`. Default: 1.

        Returns:
            The traced step, and an iterator over the features of the batches.
            The iterator starts over after the last batch.
        """
        batches = device_loops.filled_up(batches, at_once)
        data = self._inputs.dataset(_unlabeled(examples), batches, at_once)
        # Batches differ in their padded length, and data sets in their maximum
        # number of choices. Each of these shapes has a step of its own.
        key = (function, at_once, repr(data.element_spec))
        if key not in self._steps:
            looped = function
            if at_once > 1:
                looped = functools.partial(device_loops.loop, function)
            looped = self._compiler.compiled(f"evaluation {function}", looped)
            self._steps[key] = graphs.one_trace(
                functools.partial(self._on_replicas, looped), data
            )
        return self._steps[key], self._iterators.over(data)

    def eval_steps(
        self, step: Callable[..., Any], batches: Iterable[Any]
    ) -> Iterator[tuple[Any, Any]]:
        """Yields the outputs and the indices of each batch's examples.

        The batches are in order. On a single device, two batches are computed
        in parallel, since the small operations of one batch leave cores idle.

        Args:
            step: See `evaluation`.
            batches: Features of batches, from the iterator of `evaluation`.
        """
        at_once = 2 if self.strategy.num_replicas_in_sync == 1 else 1
        yield from graphs.map_in_order(step, batches, at_once)

    def _gathered(self, value: Any) -> list[Any]:
        """Returns a list of the rows that this process's replicas computed."""
        parts = self.strategy.experimental_local_results(value)
        return [row for part in parts for row in part.numpy()]

    def _on_replicas(
        self,
        function: Callable[[dict[str, tf.Tensor]], tf.Tensor],
        features: dict[str, Any],
    ) -> tuple[Any, Any]:
        def step(features: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
            inputs = without(features, _NOT_INPUTS)
            indices = tf.reshape(features["indices"], [-1])
            with (
                self._half_kernels.scope(),
                shared_graphs.sharing(self._block_graphs),
            ):
                return function(inputs), indices

        return self.strategy.run(step, args=(features,))


def _unlabeled(examples: Examples) -> Examples:
    """Returns a copy of the examples without their targets."""
    return dataclasses.replace(examples, targets=None)
