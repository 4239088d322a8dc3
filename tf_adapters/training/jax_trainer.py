"""Training and evaluation of a model with JAX."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
from typing import TYPE_CHECKING
from typing import Any

from jax import numpy as jnp
import keras
import numpy as np

from tf_adapters.common import progress_bar
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.training import device_errors
from tf_adapters.training import judging
from tf_adapters.training.adapter_drop import num_left_out
from tf_adapters.training.jax_forward import JaxForward
from tf_adapters.training.jax_step import JaxStep
from tf_adapters.training.optimizers import AdamWOfSums
from tf_adapters.training.optimizers import make_optimizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterable
    from collections.abc import Iterator

    from tf_adapters.common.types import Tensor
    from tf_adapters.config.data_settings import DataConfig
    from tf_adapters.config.settings import TrainConfig
    from tf_adapters.data.batches.batch_plan import Batch
    from tf_adapters.data.examples import Examples
    from tf_adapters.training.jax_devices import JaxDevices


class JaxTrainer:
    """The counterpart of `Trainer` for Keras's JAX backend.

    Order and features of the batches are those of `Trainer`. Batches are padded
    to few shapes, since each shape is compiled.

    The arguments are those of `Trainer`, with `JaxDevices` as the strategy.
    """

    optimizer_class: type[AdamWOfSums] = AdamWOfSums

    def __init__(
        self,
        model: Any,
        strategy: JaxDevices,
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
        self.compiled_lengths = self.fixed_lengths or batch_plan.few_lengths(
            data.max_length
        )
        self.seed = seed
        self.metric_names = metric_names
        if trained is None:
            trained = dict(model.trained_variables())
        self.names, self.variables = list(trained), list(trained.values())
        # `None` before `prepare_training`.
        self.optimizer: AdamWOfSums | Any = None
        self.step: JaxStep | Any = None
        # Names and shapes of the programs that were compiled so far.
        self.programs: set[tuple[Any, ...]] = set()
        self._answers = functools.partial(model, training=False)
        self._forward = JaxForward(model, self.programs)
        advice = device_errors.memory_advice(settings)
        self._explained = functools.partial(
            device_errors.explained, advice, None, False
        )

    def evaluate(self, examples: Examples) -> dict[str, float]:
        """Returns a dict of the metrics on all of `examples`."""
        return self.judge(examples)[0]

    def judge(
        self, examples: Examples, title: str | None = None
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """Returns the metrics, and predictions to store; see `Trainer`."""
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
        """Returns the outputs for each example; see `Trainer.predict`."""
        rows: list[Any] = [None] * len(examples)
        for index, row in self.compute(self._answers, examples, title):
            rows[index] = row
        return rows

    def compute(
        self,
        function: Callable[[dict[str, Tensor]], Tensor],
        examples: Examples,
        title: str | None = None,
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the index and the output of each example.

        Args:
            function: Function of the inputs of a batch that returns the
                outputs. It is compiled once for each shape. Pass the same
                object each time, so that it is not compiled again.
            examples: `Examples`.
            title: See `Trainer.predict`.
        """
        unlabeled = dataclasses.replace(examples, targets=None)
        plan = self._evaluation_plan(examples)
        forward = functools.partial(self._forward.compute, function)
        bar = progress_bar.progress_bar(
            len(plan), title, unit="batch", delay=progress_bar.DELAY
        )
        with bar, self._explained():
            for _, batches in itertools.groupby(plan, key=_shape):
                results = (
                    (features["indices"], forward(features))
                    for features in self._features(unlabeled, list(batches))
                )
                for indices, outputs in _one_ahead(results):
                    yield from _real_rows(indices, outputs)
                    bar.update()

    def _evaluation_plan(self, examples: Examples) -> list[Batch]:
        size = self.settings.eval_batch_size
        plan = batch_plan.plan_evaluation(
            *(examples.lengths, size, self.fixed_lengths, examples.costs)
        )
        rows = self.strategy.rows(size)
        return batch_plan.in_fixed_shapes(plan, rows, self.compiled_lengths)

    def plan(self, examples: Examples, epoch: int) -> list[Batch]:
        """Returns the batches of one epoch; see `batch_plan.plan_training`."""
        settings = self.settings
        plan = batch_plan.plan_training(
            examples.lengths,
            settings.batch_size,
            self.seed,
            epoch,
            self.batching,
            self.fixed_lengths,
            settings.steps_per_loop,
            examples.costs,
        )
        parts = settings.accumulation_steps
        rows = self.strategy.rows(settings.batch_size, parts)
        return batch_plan.in_fixed_shapes(plan, rows, self.compiled_lengths)

    def kind(self, examples: Examples | None, batch: Batch) -> int:
        """Returns a batch's length, which determines its shape."""
        return batch.length

    def prepare_training(self, total_steps: int) -> None:
        """Creates the optimizer and the train step."""
        with self.strategy.scope():
            optimizer = make_optimizer(
                self.settings, self.model.phases(total_steps), self.variables
            )
        self.use_optimizer(optimizer)

    def use_optimizer(self, optimizer: AdamWOfSums) -> None:
        """Sets the optimizer and creates the train step.

        The optimizer may also hold the variables of other models.
        """
        self.optimizer = optimizer
        self.step = JaxStep(
            *(self.model, self.strategy, self.variables, optimizer),
            *(self.settings, self.seed, self.programs),
        )

    def train_loops(
        self, examples: Examples, loops: list[list[Batch]]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Trains on lists of batches; see `Trainer.train_loops`.

        Yields:
            For each list, the losses `(steps,)` and the norms of the gradients
            `(steps, variables)`.
        """
        by_shape = collections.defaultdict(list)
        for loop in loops:
            by_shape[_shape(loop[0])] += loop
        features = {
            shape: self._features(examples, batches)
            for shape, batches in by_shape.items()
        }
        for loop in loops:
            left_out = num_left_out(
                self.settings.adapter_drop, self.seed, loop[0].draw
            )
            with self._explained():
                results = [
                    self.step.run(next(features[_shape(batch)]), left_out)
                    for batch in loop
                ]
            losses, norms = zip(*results, strict=True)
            yield jnp.stack(losses), jnp.stack(norms)

    def _features(
        self, examples: Examples, batches: list[Batch]
    ) -> Iterator[dict[str, Tensor]]:
        """Yields the features of batches of equal shapes, on the devices."""
        dataset = pipeline.dataset(examples, batches)
        return map(self.strategy.put, dataset.as_numpy_iterator())


def _shape(batch: Batch) -> tuple[int, int | None]:
    return batch.length, batch.size


def _one_ahead(items: Iterable[Any]) -> Iterator[Any]:
    """Yields items, each after the next one was made.

    The devices compute the next item while the caller uses this one.
    """
    pairs = itertools.pairwise(itertools.chain(items, [None]))
    return (item for item, _ in pairs)


def _real_rows(
    indices: Tensor, outputs: Tensor
) -> Iterator[tuple[int, np.ndarray]]:
    """Yields the index and the output of each row that is not padding.

    Rows of padding have the index -1.
    """
    rows = zip(np.asarray(indices), np.asarray(outputs), strict=True)
    return ((index, row) for index, row in rows if index >= 0)
