"""Training and evaluation of a model, for all methods and strategies."""

from __future__ import annotations

import collections
import contextlib
import functools
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import tensorflow as tf

from tf_adapters.common.errors import ConfigError
from tf_adapters.data.batches import batch_plan
from tf_adapters.training import device_errors
from tf_adapters.training import distribution
from tf_adapters.training import graphs
from tf_adapters.training import judging
from tf_adapters.training import workers
from tf_adapters.training.adapter_drop import num_left_out
from tf_adapters.training.compilation import Compiler
from tf_adapters.training.evaluator import Evaluator
from tf_adapters.training.fused_adamw import FusedAdamW
from tf_adapters.training.half_kernels import HalfKernels
from tf_adapters.training.inputs import Inputs
from tf_adapters.training.optimizers import make_optimizer
from tf_adapters.training.train_step import TrainStep

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterator

    import keras

    from tf_adapters.config.data_settings import DataConfig
    from tf_adapters.config.settings import TrainConfig
    from tf_adapters.data.batches.batch_plan import Batch
    from tf_adapters.data.examples import Examples
    from tf_adapters.training.optimizers import AdamWOfSums


class Trainer:
    """Trains the variables that a model's method declares, and evaluates it.

    The model must be built in the strategy's scope. All strategies use the same
    `TrainStep` and the same `Evaluator`.

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

    optimizer_class: type[AdamWOfSums] = FusedAdamW

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
        self.compiler = Compiler(settings.jit_compile, strategy)
        # Function of a batch's inputs that returns the outputs in evaluation.
        self.answers = functools.partial(model, training=False)
        self.programs = self.compiler.programs
        # Lengths of the batches that XLA compiles.
        self.compiled_lengths: tuple[int, ...] = ()
        if self.compiler.is_on:
            few = batch_plan.few_lengths(data.max_length)
            self.compiled_lengths = self.fixed_lengths or few
        self.inputs = Inputs(strategy)
        self.half_kernels = HalfKernels(model, strategy, self.variables)
        self.evaluator = Evaluator(
            *(strategy, self.inputs, self.compiler, settings.steps_per_loop),
            self.half_kernels,
        )
        self._iterators = graphs.Iterators()
        self._memory_advice = device_errors.memory_advice(settings)

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
        for index, row in self.compute(self.answers, examples, title):
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
        plan = self.evaluation_plan(examples)
        with self._explained():
            yield from self.evaluator.compute(function, examples, plan, title)

    def evaluation_plan(self, examples: Examples) -> list[Batch]:
        """Returns the batches of an evaluation, by falling length."""
        size = self.settings.eval_batch_size
        plan = batch_plan.plan_evaluation(
            examples.lengths, size, self.fixed_lengths, examples.costs
        )
        return self._in_few_shapes(plan, size, examples)

    def plan(self, examples: Examples, epoch: int) -> list[Batch]:
        """Returns the batches of one epoch; see `batch_plan.plan_training`."""
        self._check_replicas(examples)
        plan = batch_plan.plan_training(
            examples.lengths,
            self.settings.batch_size,
            self.seed,
            epoch,
            self.batching,
            self.fixed_lengths,
            self.settings.steps_per_loop,
            examples.costs,
        )
        return self._in_few_shapes(plan, self.settings.batch_size, examples)

    def _explained(self) -> contextlib.AbstractContextManager[None]:
        compiles = self.compiler.is_on or distribution.is_tpu(self.strategy)
        return device_errors.explained(
            self._memory_advice, self.settings.deterministic, compiles
        )

    def _in_few_shapes(
        self, plan: list[Batch], batch_size: int, examples: Examples
    ) -> list[Batch]:
        """Pads batches to a few shapes if XLA compiles a program for each.

        Batches are not padded if the numbers of choices or windows differ
        between examples. They are then not compiled.
        """
        counts = examples.num_choices
        if not self.compiler.is_on or self.fixed_lengths or np.ptp(counts):
            return plan
        lengths = self.compiled_lengths
        return batch_plan.in_fixed_shapes(plan, batch_size, lengths)

    def _check_replicas(self, examples: Examples) -> None:
        replicas = self.strategy.num_replicas_in_sync
        rows = min(len(examples), self.settings.batch_size)
        if rows < replicas:
            raise ConfigError(
                f"A batch of {self.settings.batch_size} (--batch_size) from "
                f"{len(examples)} training examples has fewer rows than there "
                f"are replicas: {replicas}. Each replica needs at least one. "
                "Give more examples or a larger batch, or use fewer devices, "
                "for example --distribution_strategy=one_device."
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
                self.optimizer_class,
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
            self.compiler,
            self.half_kernels,
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
            kind: self._iterators.over(self.inputs.dataset(examples, some))
            for kind, some in batches.items()
        }
        for kind, loop in zip(kinds, loops, strict=True):
            left_out = num_left_out(
                self.settings.adapter_drop, self.seed, loop[0].draw
            )
            with self._explained():
                outputs = self.step.run(
                    iterators[kind], tf.constant(len(loop)), left_out
                )
            yield outputs
