"""The training loop: steps, checks, validations, and the best weights."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.common.progress_bar import progress_bar
from tf_adapters.data.batches import batch_plan
from tf_adapters.training.callbacks import LoopCallbacks
from tf_adapters.training.progress import Progress
from tf_adapters.training.progress import assign_values
from tf_adapters.training.progress import read_values
from tf_adapters.training.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterable

    import keras

    from tf_adapters.common.types import Tensor
    from tf_adapters.data.batches.batch_plan import Batch
    from tf_adapters.data.batches.task_mixture import Mixture
    from tf_adapters.data.examples import Examples
    from tf_adapters.training.loss_scale import LossScale
    from tf_adapters.training.trainer_protocol import TrainerProtocol


class Loop:
    """Trains a model. Afterwards, the model has the best or the last weights.

    Args:
        trainer: See `TrainerProtocol`.
        train: Training data: `Examples`, or `Mixture` for several tasks.
        validation: Validation data, of the same class as `train`.
        log: Function of a dict, called at every check and validation.
        save_best: Function of a dict of metrics. Called after each validation
            whose weights are kept: it is the best so far, see
            `Progress.is_better`, or `train.keep` is "last".
        recovery: `Recovery`, which writes checkpoints and finds the one to
            resume from, or `None` (default).
        save_snapshot: Function of the number of steps done, called every
            `train.snapshot_steps`, or `None` (default).
        callbacks: List of `keras.callbacks.Callback`. Default: none.

    Attributes:
        predictions: Predictions for `validation` with the kept weights, as
            returned by the trainer's `judge`.
    """

    def __init__(
        self,
        trainer: TrainerProtocol,
        train: Examples | Mixture,
        validation: Examples | Mixture,
        log: Callable[[dict[str, Any]], None],
        save_best: Callable[[dict[str, float]], None],
        recovery: Any = None,
        save_snapshot: Callable[[int], None] | None = None,
        callbacks: Iterable[keras.callbacks.Callback] = (),
    ) -> None:
        self.trainer = trainer
        self.settings = trainer.settings
        self.train = train
        self.validation = validation
        self.log = log
        self.save_best = save_best
        self.recovery = recovery
        self.save_snapshot = save_snapshot
        self._given_callbacks = list(callbacks)
        self.progress = Progress()
        self.schedule = Schedule(trainer, train, save_snapshot is not None)
        self.is_built = False
        self.predictions: Any = None

    def run(self) -> dict[str, Any]:
        """Trains the model.

        Returns:
            Dict with `validation` (metrics of the kept weights), `best_step`
            (the step of these weights), `mean_metric` over validations,
            `steps`, `examples`, `seconds` spent in training steps,
            `examples_per_second`, `padding_share` of the batches that were run,
            in float16, `skipped_steps` (steps without effect because their
            gradients overflowed) and, if XLA compiled any, the number of
            `compiled_programs`. The first steps, which build the graph, count
            in `examples_per_second` only if there are no others.

        Raises:
            NonFiniteError: If a loss, a gradient or a weight is not finite. The
                message names the step and the variable. Weights that are not
                finite are never saved.
            Stopped: If the process was asked to stop.
        """
        self.trainer.prepare_training(len(self.schedule.batches))
        self.callbacks = LoopCallbacks(
            self._given_callbacks, self.trainer, len(self.schedule.plans)
        )
        self._recover()
        with progress_bar(
            self.schedule.examples_after[-1],
            "building the graph",
            self._examples,
        ) as self.bar:
            self.callbacks.train_begins(self.progress.step)
            first_step = 0
            for epoch, plan in enumerate(self.schedule.plans):
                rest = plan[max(0, self.progress.step - first_step) :]
                if rest and not self._stops_early():
                    self.callbacks.epoch_begins(epoch)
                    self._run_epoch(epoch, rest)
                    self.callbacks.epoch_ends(epoch)
                first_step += len(plan)
            self.callbacks.train_ends()
        assign_values(self.trainer.variables, self.progress.best_weights)
        if self.predictions is None:
            # The kept weights are from before the run was resumed, so their
            # predictions are not in memory.
            _, self.predictions = self.trainer.judge(self.validation)
        return self._summary()

    def _recover(self) -> None:
        """Resumes from the checkpoint, if there is one."""
        if self.recovery is None or self.recovery.checkpoint is None:
            return
        self.progress = Progress.read(self.recovery.checkpoint, self.trainer)
        if self.progress.best is not None:
            # Save the best weights again: a run that stopped after the
            # checkpoint may have saved weights of a later step.
            now = read_values(self.trainer.variables)
            assign_values(self.trainer.variables, self.progress.best_weights)
            self.save_best(self.progress.best_record["validation"])
            assign_values(self.trainer.variables, now)

    @property
    def _examples(self) -> int:
        """Number of examples seen so far."""
        return self.schedule.examples_after[self.progress.step]

    def _run_epoch(self, epoch: int, plan: list[Batch]) -> None:
        self.progress.epoch = epoch
        started = time.perf_counter()
        loops = list(self.schedule.loops(plan, self.progress.step))
        results = self.trainer.train_loops(self.train, loops)
        for loop, (losses, norms) in zip(loops, results, strict=True):
            seen = self._examples
            checks = self.progress.count(len(loop), losses, norms)
            self.callbacks.batches_end(self.progress.step, losses)
            if self.progress.step == self.schedule.last_phase:
                self.trainer.model.start_last_phase()
            validates = self.schedule.validates(
                self.progress.step, loop[-1] is plan[-1]
            )
            snapshots = self.schedule.is_snapshot(self.progress.step)
            if validates or checks or snapshots:
                self._check(epoch)
            if not self.is_built:
                np.asarray(norms)  # Waits for the device.
                self.is_built = True
                seconds = time.perf_counter() - started
                self.progress.building_seconds += seconds
                self.progress.building_examples += self._examples - seen
            self.progress.seconds += time.perf_counter() - started
            if validates:
                self._validate(epoch, norms[-1])
            # Updated here, with the loss and the metric of these steps.
            self.bar.update(self._examples - self.bar.n)
            if snapshots and self.save_snapshot is not None:
                self.save_snapshot(self.progress.step)
            if self.recovery is not None:
                self.recovery.after_loop(self.progress, self.trainer, checks)
            if self._stops_early():
                return
            started = time.perf_counter()

    def _check(self, epoch: int) -> None:
        """Checks and logs the losses and gradients since the last check.

        This is done before each validation and snapshot, so that weights are
        never saved after a step with infinite or NaN values.

        Raises:
            NonFiniteError: If a loss or a gradient is not finite.
        """
        mean = self.progress.check(self.trainer)
        record = {
            "step": self.progress.step,
            "epoch": epoch,
            "loss": round(mean, 6),
            "learning_rate": self.trainer.optimizer.rate_of_last_step(),
            "examples": self._examples,
        }
        if self._loss_scale is not None:
            record["skipped_steps"] = self.progress.skipped_steps
            record["loss_scale"] = self._loss_scale.read()
        if self.trainer.programs:
            record["compiled_programs"] = len(self.trainer.programs)
        self._log(record)
        self.bar.set_description(f"epoch {epoch + 1}, loss {mean:.3f}")

    @property
    def _loss_scale(self) -> LossScale | None:
        return self.trainer.optimizer.loss_scale

    def _validate(self, epoch: int, norms: Tensor) -> None:
        values, predictions = self.trainer.judge(self.validation)
        entry = {
            "step": self.progress.step,
            "epoch": epoch,
            "validation": values,
        }
        # The norms of a skipped step are infinite.
        if self.settings.log_gradient_norms and np.isfinite(norms).all():
            entry["gradient_norms"] = dict(
                zip(
                    self.trainer.names,
                    map(float, np.asarray(norms)),
                    strict=True,
                )
            )
        self._log(entry)
        self.progress.history.append(entry)
        name = self.trainer.metric_names[0]
        self.bar.set_postfix({name: f"{values[name]:.3f}"})
        if self._is_to_keep(values):
            weights = self.progress.finite_weights(self.trainer)
            self.progress.best = len(self.progress.history) - 1
            self.progress.best_weights = weights
            self.predictions = predictions
            self.save_best(values)

    def _log(self, record: dict[str, Any]) -> None:
        self.log(record)
        self.callbacks.note(record)

    def _is_to_keep(self, values: dict[str, float]) -> bool:
        """Returns whether to keep the weights, given a validation's metrics."""
        if self.progress.step < self.schedule.last_phase:
            return False
        if self.settings.keep == "last":
            return True
        return self.progress.is_better(values, self.trainer.metric_names[0])

    def _stops_early(self) -> bool:
        patience = self.settings.early_stopping_patience
        if patience is None or self.progress.best is None:
            return False
        if self.settings.keep == "last":
            return False
        if self.progress.step < (self.settings.min_steps or 0):
            return False
        since_best = len(self.progress.history) - 1 - self.progress.best
        return since_best >= patience

    def _summary(self) -> dict[str, Any]:
        done = self.schedule.batches[: self.progress.step]
        padding = batch_plan.padding_fraction(done, self.train.sequence_lengths)
        metric = self.trainer.metric_names[0]
        summary = self.progress.summary(metric, self._examples)
        summary["padding_share"] = round(padding, 4)
        if self._loss_scale is not None:
            summary["skipped_steps"] = self.progress.skipped_steps
        if self.trainer.programs:
            summary["compiled_programs"] = len(self.trainer.programs)
        return summary
