"""Training and evaluation of a model, for all methods and strategies."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
from typing import TYPE_CHECKING
from typing import Any

import tensorflow as tf

from tf_adapters.common import progress_bar
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.training import graphs
from tf_adapters.training import judging
from tf_adapters.training import workers
from tf_adapters.training.adapter_drop import num_left_out
from tf_adapters.training.optimizers import make_optimizer
from tf_adapters.training.train_step import TrainStep
from tf_adapters.training.train_step import without

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterable
    from collections.abc import Iterator

    import keras
    import numpy as np

    from tf_adapters.config.data_settings import DataConfig
    from tf_adapters.config.settings import TrainConfig
    from tf_adapters.data.batches.batch_plan import Batch
    from tf_adapters.data.examples import Examples
    from tf_adapters.training.optimizers import AdamWOfSums


class Trainer:
    """Trains the variables that a model's method declares, and evaluates it.

    The model must be built in the strategy's scope. All strategies use the same
    eval step and the same `TrainStep`.

    Args:
        model: `AdapterModel` with a head.
        strategy: `tf.distribute.Strategy`.
        settings: `TrainConfig`.
        data: `DataConfig`, which says how examples are batched.
        seed: Integer. Seed of the run.
        metric_names: Names in `heads.metrics`. The first metric selects the
            best weights.
        trained: Dict from name to variable: the variables to train. `None`
            (default) for all variables that the model declares.
    """

    def __init__(
        self,
        model: Any,
        strategy: tf.distribute.Strategy,
        settings: TrainConfig,
        data: DataConfig,
        seed: int,
        metric_names: tuple[str, ...],
        trained: dict[str, keras.Variable] | None = None,
    ) -> None:
        self.model = model
        self.strategy = strategy
        self.settings = settings
        self.batching, self.fixed_lengths = data.batching, data.fixed_lengths
        self.seed = seed
        self.metric_names = metric_names
        if trained is None:
            trained = dict(model.trained_variables())
        self.names, self.variables = list(trained), list(trained.values())
        # `None` before `prepare_training`.
        self.optimizer: AdamWOfSums | Any = None
        self.step: TrainStep | Any = None
        self._iterators = graphs.Iterators()
        self._eval_steps = {}

    def evaluate(self, examples: Examples) -> dict[str, float]:
        """Returns a dict of the metrics on all of `examples`."""
        return self.judge(examples)[0]

    def judge(
        self, examples: Examples, title: str | None = None
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """Returns the metrics, and the predictions that a run stores.

        Args:
            examples: `Examples`.
            title: See `predict`.

        Returns:
            Dict of metrics, and the predictions from the head's `judge`.
        """
        return judging.judge(
            self.model.head,
            self.metric_names,
            self.predict(examples, title),
            examples,
            self.settings.evaluate_loss,
        )

    def predict(
        self, examples: Examples, title: str | None = None
    ) -> list[np.ndarray]:
        """Returns a list with the model's outputs for each example, in order.

        Outputs with one row per token have the padded length of their batch.

        Args:
            examples: `Examples`.
            title: Title of a progress bar, shown if this takes long, or `None`
                (default) for no progress bar.
        """
        rows: list[np.ndarray | None] = [None] * len(examples)
        for index, row in self.compute(self._answers, examples, title):
            rows[index] = row
        return workers.gather_rows(self.strategy, rows)

    def compute(
        self,
        function: Callable[[dict[str, tf.Tensor]], tf.Tensor],
        examples: Examples,
        title: str | None = None,
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the index and the output of each example of this process.

        Args:
            function: Function of the inputs of a batch that returns the
                outputs. It is traced once for each shape. Pass the same object
                each time, so that it is not traced again.
            examples: `Examples`.
            title: See `predict`.
        """
        plans = self._evaluation_plans(examples)
        total = sum(map(len, plans))
        with progress_bar.progress_bar(
            total, title, unit="batch", delay=progress_bar.DELAY
        ) as bar:
            for plan in plans:
                step, batches = self.evaluation(examples, plan, function)
                batches = itertools.islice(batches, len(plan))
                for outputs, indices in self.eval_steps(step, batches):
                    yield from self._examples_of(outputs, indices)
                    bar.update()

    def _examples_of(
        self, outputs: Any, indices: Any
    ) -> Iterator[tuple[int, np.ndarray]]:
        rows = zip(
            self._gathered(indices), self._gathered(outputs), strict=True
        )
        # Padding rows have index -1.
        return ((index, row) for index, row in rows if index >= 0)

    def _answers(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        return self.model(inputs, training=False)

    def _evaluation_plans(self, examples: Examples) -> list[list[Batch]]:
        """Plans the evaluation batches; each list has batches of one shape."""
        plan = batch_plan.plan_evaluation(
            examples.lengths,
            self.settings.eval_batch_size,
            self.fixed_lengths,
            examples.costs,
        )
        groups = itertools.groupby(plan, lambda batch: self.kind(None, batch))
        return [list(batches) for _, batches in groups]

    def evaluation(
        self,
        examples: Examples,
        batches: list[Batch],
        function: Callable[[dict[str, tf.Tensor]], tf.Tensor] | None = None,
    ) -> tuple[Callable[..., Any], Iterator[Any]]:
        """Returns an evaluation step, and the features of the given batches.

        Args:
            examples: `Examples`. Their targets are not used.
            batches: List of `Batch` with equal shapes.
            function: Function to evaluate; see `compute`. `None` (default) for
                the model.

        Returns:
            The traced step, and an iterator over the features of the batches.
            The iterator starts over after the last batch.
        """
        unlabeled = dataclasses.replace(examples, targets=None)
        dataset = self._distribute(unlabeled, batches)
        # Batches differ in their padded length, and data sets in their maximum
        # number of choices. Each of these shapes has a step of its own.
        function = function or self._answers
        key = (function, repr(dataset.element_spec))
        if key not in self._eval_steps:
            self._eval_steps[key] = graphs.one_trace(
                functools.partial(self._eval_on_replicas, function), dataset
            )
        return self._eval_steps[key], self._iterators.over(dataset)

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

    def _distribute(
        self, examples: Examples, batches: list[Batch]
    ) -> tf.data.Dataset | tf.distribute.DistributedDataset:
        replicas = self.strategy.num_replicas_in_sync

        def build(context: tf.distribute.InputContext) -> tf.data.Dataset:
            local = replicas // context.num_input_pipelines
            first = context.input_pipeline_id * local
            shards = range(first, first + local)
            data = pipeline.dataset(examples, batches, replicas, shards)
            # Repeated without end, because TensorFlow would otherwise ask all
            # workers before every step whether there is another batch.
            return data.repeat()

        if isinstance(self.strategy, tf.distribute.OneDeviceStrategy):
            # There is nothing to distribute, and a distributed iterator takes
            # seconds to end: its autotuning cannot be turned off (docs/log.md).
            return build(tf.distribute.InputContext())
        return self.strategy.distribute_datasets_from_function(build)

    def _eval_on_replicas(
        self,
        function: Callable[[dict[str, tf.Tensor]], tf.Tensor],
        features: dict[str, Any],
    ) -> tuple[Any, Any]:
        def step(features: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
            inputs = without(features, ("indices", "weights"))
            return function(inputs), features["indices"]

        return self.strategy.run(step, args=(features,))

    def plan(self, examples: Examples, epoch: int) -> list[Batch]:
        """Returns the batches of one epoch; see `batch_plan.plan_training`."""
        return batch_plan.plan_training(
            examples.lengths,
            self.settings.batch_size,
            self.seed,
            epoch,
            self.batching,
            self.fixed_lengths,
            self.settings.steps_per_loop,
            examples.costs,
        )

    def kind(self, examples: Examples | None, batch: Batch) -> int | None:
        """Returns a batch's padded length if its size is fixed, else `None`.

        Batches with equal results can be trained on in one device call.
        """
        return batch.length if batch.size else None

    def prepare_training(self, total_steps: int) -> None:
        """Creates the optimizer and the train step."""
        with self.strategy.scope():
            optimizer = make_optimizer(
                self.settings,
                self.model.phases(total_steps),
                self.variables,
                self.model.computes_in_float16,
            )
        self.use_optimizer(optimizer)

    def use_optimizer(self, optimizer: AdamWOfSums) -> None:
        """Sets the optimizer and creates the train step.

        The optimizer may also hold the variables of other models.
        """
        self.optimizer = optimizer
        self.step = TrainStep(
            self.model,
            self.strategy,
            self.variables,
            optimizer,
            self.settings,
            self.seed,
        )

    def train_loops(
        self, examples: Examples, loops: list[list[Batch]]
    ) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
        """Trains on lists of batches, each in one device call.

        Args:
            examples: `Examples`.
            loops: List of lists of `Batch`. The batches of a list have the
                same `kind`.

        Yields:
            For each list, the losses `(steps,)` and the norms of the gradients
            `(steps, variables)`.
        """
        kinds = [self.kind(examples, loop[0]) for loop in loops]
        batches = collections.defaultdict(list)
        for kind, loop in zip(kinds, loops, strict=True):
            batches[kind] += loop
        iterators = {
            kind: self._iterators.over(self._distribute(examples, some))
            for kind, some in batches.items()
        }
        for kind, loop in zip(kinds, loops, strict=True):
            left_out = num_left_out(
                self.settings.adapter_drop, self.seed, loop[0].draw
            )
            yield self.step.run(
                iterators[kind], tf.constant(len(loop)), left_out
            )
