"""The training loop of several runs whose steps one JAX program computes."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from typing import TYPE_CHECKING
from typing import Any

import jax
from jax import numpy as jnp
import numpy as np

from tf_adapters.common.errors import NonFiniteError
from tf_adapters.common.errors import UserError
from tf_adapters.common.progress_bar import progress_bar
from tf_adapters.data.batches import arrays
from tf_adapters.data.batches import batch_plan
from tf_adapters.training import judging
from tf_adapters.training.jax_runs import JaxRuns
from tf_adapters.training.optimizers import make_schedule
from tf_adapters.training.progress import Progress
from tf_adapters.training.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Sequence

    from tf_adapters.common.types import Tensor
    from tf_adapters.config.data_settings import DataConfig
    from tf_adapters.config.settings import TrainConfig
    from tf_adapters.data.batches.batch_plan import Batch
    from tf_adapters.data.examples import Examples


@dataclasses.dataclass(frozen=True)
class RunStart:
    """What distinguishes a run from the others that train with it.

    Attributes:
        seed: Integer.
        settings: `TrainConfig`. Only its learning rate may differ between
            runs.
        values: The first values of all variables, see `JaxRuns`.
        train: Training `Examples`, as many as in the other runs, with lists.
        validation: Validation `Examples`, likewise.
    """

    seed: int
    settings: TrainConfig
    values: list[Tensor]
    train: Examples
    validation: Examples


class RunsLoop:
    """Trains runs together; the counterpart of `Loop`, for `JaxRuns`.

    Each run has the batches, dropout masks, learning rates and validations that
    it has alone with `data.batching="fixed"`, and keeps its own best weights. A
    run whose loss is not finite does not disturb the others.

    Args:
        model: See `JaxRuns`.
        starts: List of `RunStart`.
        data: `DataConfig` of the runs, with a single length of batches.
        metric_names: Names of the metrics. The first selects the weights.
    """

    def __init__(
        self,
        model: Any,
        starts: list[RunStart],
        data: DataConfig,
        metric_names: tuple[str, ...],
    ) -> None:
        self.model = model
        self.data = data
        self.metric_names = metric_names
        self.settings = starts[0].settings
        self.runs = JaxRuns(
            *(model, self.settings),
            *([one.seed for one in starts], [one.values for one in starts]),
        )
        self.members = [_Member(self.runs, one, data) for one in starts]
        self.predictions: list[Any] = [None] * len(starts)
        self._validation = [one.validation for one in starts]
        self._best: dict[str, Tensor] = {}
        self._pending: list[Any] = []
        self.seconds = 0.0

    def run(self) -> None:
        """Trains the runs, which then have their best or their last weights."""
        schedule = self.members[0].schedule
        rates = np.stack([one.rates() for one in self.members])
        plans = zip(*(m.schedule.plans for m in self.members), strict=True)
        started, step = time.perf_counter(), 0
        bar = progress_bar(len(schedule.batches), "training", unit="step")
        with bar:
            for epoch, epoch_plans in enumerate(plans):
                for batches in zip(*epoch_plans, strict=True):
                    self._step(batches, rates[:, step])
                    step += 1
                    bar.update()
                    is_last = batches[0] is epoch_plans[0][-1]
                    if schedule.validates(step, is_last):
                        self._check(epoch)
                        self.seconds += time.perf_counter() - started
                        self._validate(step, epoch)
                        started = time.perf_counter()
        self.runs.use(self._best)

    def outcomes(self) -> list[dict[str, Any]]:
        """Returns, for each run, the dict that `Loop.run` returns.

        A run that failed has a dict with an `error`, a text. Each duration is
        the total divided by the number of runs.
        """
        return [self._outcome(member) for member in self.members]

    def _step(self, batches: Sequence[Batch], rates: np.ndarray) -> None:
        parts = [
            arrays.features(member.train, batch)
            for member, batch in zip(self.members, batches, strict=True)
        ]
        self._pending.append(self.runs.train(_stacked(parts), rates))

    def _check(self, epoch: int) -> None:
        """Checks the losses and gradients of each run since the last check."""
        losses, norms = (
            np.stack([np.asarray(value) for value in values], axis=1)
            for values in zip(*self._pending, strict=True)
        )
        self._pending = []
        for number, member in enumerate(self.members):
            member.check(losses[number], norms[number], epoch)

    def _validate(self, step: int, epoch: int) -> None:
        is_to_keep = []
        for number, (values, compared) in enumerate(
            self.judge(self._validation)
        ):
            record = {"step": step, "epoch": epoch, "validation": values}
            keeps = self.members[number].add(record, self.metric_names[0])
            if keeps:
                self.predictions[number] = compared
            is_to_keep.append(keeps)
        trained = self.runs.trained
        self._best = _chosen(
            jnp.array(is_to_keep), trained, self._best or trained
        )

    def judge(
        self, examples: list[Examples]
    ) -> list[tuple[dict[str, float], dict[str, Any]]]:
        """Returns metrics and predictions of each run; see `judging.judge`.

        A run that failed has empty dicts.

        Args:
            examples: `Examples` for each run, as many for all of them.
        """
        outputs = self._predict(examples)
        return [
            self._judge(*own)
            for own in zip(self.members, outputs, examples, strict=True)
        ]

    def _judge(
        self, member: _Member, outputs: list[np.ndarray], examples: Examples
    ) -> tuple[dict[str, float], dict[str, Any]]:
        if member.error:
            return {}, {}
        try:
            return judging.judge(
                *(self.model.head, self.metric_names, outputs, examples),
                evaluate_loss=self.settings.evaluate_loss,
            )
        except (UserError, NonFiniteError) as error:
            # The last step can make weights that are not finite. The other
            # runs go on.
            member.error = str(error)
            return {}, {}

    def _predict(self, examples: list[Examples]) -> list[list[np.ndarray]]:
        """Returns, for each run, the outputs for each of its examples."""
        size, lengths = self.settings.eval_batch_size, self.data.fixed_lengths
        plans = [
            batch_plan.plan_evaluation(own.lengths, size, lengths)
            for own in examples
        ]
        results = []
        for batches in zip(*plans, strict=True):
            parts = [
                arrays.features(own, batch)
                for own, batch in zip(examples, batches, strict=True)
            ]
            # Not read yet, so that the device need not wait for this process.
            results.append((batches, self.runs.outputs(_stacked(parts))))
        rows: list[Any] = [[None] * len(own) for own in examples]
        for batches, outputs in results:
            found = np.asarray(outputs)
            for own, batch, values in zip(rows, batches, found, strict=True):
                for place, value in zip(batch.indices, values, strict=False):
                    own[place] = value
        return rows

    @contextlib.contextmanager
    def values_of(self, number: int, model: Any) -> Iterator[None]:
        """Context manager in which a model has the weights of a run.

        Args:
            number: Index of the run.
            model: Model of the run's seed. A fusion has its own members.
        """
        model.hold_encoder()
        variables = model.trained_variables()
        before = {name: v.value for name, v in variables.items()}
        for name, values in self.runs.trained.items():
            variables[name].assign(values[number])
        try:
            yield
        finally:
            for name, variable in variables.items():
                variable.assign(before[name])

    def _outcome(self, member: _Member) -> dict[str, Any]:
        if member.error:
            return {"error": member.error}
        schedule = member.schedule
        member.progress.seconds = self.seconds / len(self.members)
        summary = member.progress.summary(
            self.metric_names[0], schedule.examples_after[-1]
        )
        padding = batch_plan.padding_fraction(
            schedule.batches, member.train.sequence_lengths
        )
        return {**summary, "padding_share": round(padding, 4)}


class _Member:
    """One of the runs; for `Schedule` and `Progress`, its trainer.

    Args:
        runs: `JaxRuns`.
        start: `RunStart`.
        data: `DataConfig`.
    """

    def __init__(self, runs: JaxRuns, start: RunStart, data: DataConfig):
        self.model, self.names = runs.model, runs.names
        self.optimizer = runs.optimizer
        self.settings, self.seed = start.settings, start.seed
        self.train = start.train
        self._lengths = data.fixed_lengths
        self.progress = Progress()
        trainer: Any = self
        self.schedule = Schedule(trainer, self.train, False)
        self.error = ""

    def plan(self, examples: Examples, epoch: int) -> list[Batch]:
        """Returns the batches of one epoch; see `JaxTrainer.plan`."""
        return batch_plan.plan_training(
            *(examples.lengths, self.settings.batch_size, self.seed, epoch),
            *("fixed", self._lengths),
        )

    def kind(self, examples: Examples, batch: Batch) -> int:
        """Returns a batch's length, which determines its shape."""
        return batch.length

    def rates(self) -> np.ndarray:
        """Returns the learning rate of each step."""
        steps = len(self.schedule.batches)
        schedule = make_schedule(self.settings, self.model.phases(steps))
        return np.asarray(schedule(np.arange(steps)))

    def check(self, losses: np.ndarray, norms: np.ndarray, epoch: int) -> None:
        """Checks steps, `(steps,)` and `(steps, variables)`; counts them."""
        if self.error:
            return
        self.progress.epoch = epoch
        self.progress.count(len(losses), losses, norms)
        try:
            trainer: Any = self
            self.progress.check(trainer)
        except NonFiniteError as error:
            self.error = str(error)

    def add(self, record: dict[str, Any], metric: str) -> bool:
        """Adds a validation; returns whether its weights are to be kept."""
        if self.error:
            return False
        progress = self.progress
        keeps = self.settings.keep == "last" or progress.is_better(
            record["validation"], metric
        )
        progress.history.append(record)
        if keeps:
            progress.best = len(progress.history) - 1
        return keeps


def _stacked(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Stacks the features of several batches on a new first axis."""
    return {name: np.stack([part[name] for part in parts]) for name in parts[0]}


@jax.jit
def _chosen(
    takes_new: Tensor, new: dict[str, Tensor], old: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Returns, for each run, the new values or the old ones."""
    return jax.tree.map(
        lambda a, b: jnp.where(
            takes_new.reshape(-1, *[1] * (a.ndim - 1)), a, b
        ),
        *(new, old),
    )
