"""A training run: steps, checks, validations, and storing the best weights."""

import itertools
import time

import numpy as np

from tf_adapters.common.errors import NonFiniteError
from tf_adapters.common.progress_bar import progress_bar
from tf_adapters.data.batches import batch_plan
from tf_adapters.training import finite
from tf_adapters.training.callbacks import LoopCallbacks
from tf_adapters.training.progress import Progress
from tf_adapters.training.progress import assign_values
from tf_adapters.training.progress import read_values

# Checks read losses and gradients, which waits for the device.
_STEPS_BETWEEN_CHECKS = 20


class Loop:
    """Trains a model and leaves the best weights in it.

    Args:
        trainer: See `TrainerProtocol`.
        train: Training data of the trainer: `Examples` or `Mixture`.
        validation: Validation data, likewise.
        log: Function of a dict, called at every check and validation.
        save_best: Function of a dict of metrics, called after each validation
            whose weights are kept: those with the best value of the first
            metric so far, or all if `train.keep` is "last".
        recovery: `Recovery`, which writes checkpoints and finds the one to
            resume from, or `None` (default).
        save_snapshot: Function of the number of steps done, called every
            `train.snapshot_steps`, or `None` (default).
        callbacks: List of `keras.callbacks.Callback`. Default: none.

    Attributes:
        predictions: Predictions of the kept weights on `validation`, as
            returned by the trainer's `judge`.
    """

    def __init__(
        self,
        trainer,
        train,
        validation,
        log,
        save_best,
        recovery=None,
        save_snapshot=None,
        callbacks=(),
    ):
        self.trainer = trainer
        self.settings = trainer.config.train
        self.train = train
        self.validation = validation
        self.log = log
        self.save_best = save_best
        self.recovery = recovery
        self.save_snapshot = save_snapshot
        self._given_callbacks = list(callbacks)
        self.progress = Progress()
        self.plans = _first_steps(
            _plans(lambda epoch: trainer.plan(train, epoch), self.settings),
            self.settings.max_steps,
        )
        self.batches = list(itertools.chain.from_iterable(self.plans))
        sizes = [len(batch.indices) for batch in self.batches]
        # Number of examples seen, indexed by the number of steps done.
        self.examples_after = [0, *itertools.accumulate(sizes)]
        self.last_phase = trainer.model.last_phase_step(len(self.batches))
        self.is_built = False
        self.predictions = None

    def run(self):
        """Trains the model.

        Returns:
            Dict with `validation` (metrics of the kept weights), `best_step`,
            `mean_metric` over validations, `steps`, `examples`, `seconds` spent
            in training steps, `examples_per_second` (without the first steps,
            which build the graph, unless there are no others),
            `padding_share` of the batches that were run, and, in float16,
            `skipped_steps`: the number of steps without effect, because their
            gradients overflowed.

        Raises:
            NonFiniteError: If a loss, a gradient or a weight is not finite. The
                message names the step and the variable. No such weights are
                saved.
            Stopped: If the process was asked to stop.
        """
        self.trainer.prepare_training(len(self.batches))
        self.callbacks = LoopCallbacks(
            self._given_callbacks, self.trainer, self.settings.epochs
        )
        self._recover()
        with progress_bar(
            self.examples_after[-1], "building the graph", self._examples
        ) as self.bar:
            self.callbacks.train_begins(self.progress.step)
            first_step = 0
            for epoch, plan in enumerate(self.plans):
                rest = plan[max(0, self.progress.step - first_step) :]
                if rest and not self._stops_early():
                    self.callbacks.epoch_begins(epoch)
                    self._run_epoch(epoch, rest)
                    self.callbacks.epoch_ends(epoch)
                first_step += len(plan)
            self.callbacks.train_ends()
        assign_values(self.trainer.variables, self.progress.best_weights)
        if self.predictions is None:
            # The run was resumed, and no validation since then was better.
            _, self.predictions = self.trainer.judge(self.validation)
        return self._summary()

    def _recover(self):
        """Resumes from the checkpoint, if there is one."""
        if self.recovery is None or self.recovery.checkpoint is None:
            return
        self.progress = Progress.read(self.recovery.checkpoint, self.trainer)
        if self.progress.best is not None:
            # The saved weights may come from a later step than the checkpoint.
            now = read_values(self.trainer.variables)
            assign_values(self.trainer.variables, self.progress.best_weights)
            self.save_best(self._best["validation"])
            assign_values(self.trainer.variables, now)

    @property
    def _examples(self):
        """Number of examples seen so far."""
        return self.examples_after[self.progress.step]

    @property
    def _best(self):
        """The validation record of the kept weights."""
        return self.progress.history[self.progress.best]

    def _run_epoch(self, epoch, plan):
        self.progress.epoch = epoch
        started = time.perf_counter()
        loops = list(self._loops(plan))
        results = self.trainer.train_loops(self.train, loops)
        for loop, (losses, norms) in zip(loops, results, strict=True):
            checks = self._count(loop, losses, norms)
            self.callbacks.batches_end(self.progress.step, losses)
            if self.progress.step == self.last_phase:
                self.trainer.model.start_last_phase()
            validates = self._validates(
                self.progress.step, loop[-1] is plan[-1]
            )
            snapshots = self._is_snapshot(self.progress.step)
            if validates or checks or snapshots:
                self._check(epoch)
            if not self.is_built:
                np.asarray(norms)  # Waits for the device.
                self._count_building(loop, time.perf_counter() - started)
            self.progress.seconds += time.perf_counter() - started
            if validates:
                self._validate(epoch, norms[-1])
            # Updated here, with the loss and the metric of these steps.
            self.bar.update(self._examples - self.bar.n)
            if snapshots:
                self.save_snapshot(self.progress.step)
            if self.recovery is not None:
                self.recovery.after_loop(self.progress, self.trainer, checks)
            if self._stops_early():
                return
            started = time.perf_counter()

    def _loops(self, plan):
        """Yields lists of batches, each for one device call.

        A list ends whenever the host has something to do between steps.
        """
        loop = []
        for step, batch in enumerate(plan, self.progress.step + 1):
            if loop and self._kind(batch) != self._kind(loop[0]):
                yield loop
                loop = []
            loop.append(batch)
            ends = self._validates(step, batch is plan[-1])
            ends |= step == self.last_phase or self._is_snapshot(step)
            if ends or len(loop) == self.settings.steps_per_loop:
                yield loop
                loop = []

    def _kind(self, batch):
        return self.trainer.kind(self.train, batch)

    def _validates(self, step, is_last):
        every = self.settings.validate_every_steps
        return is_last or bool(every and step % every == 0)

    def _is_snapshot(self, step):
        every = self.settings.snapshot_steps
        return bool(self.save_snapshot and every and step % every == 0)

    def _count(self, loop, losses, norms):
        """Counts a loop's steps; returns whether a check is due."""
        before = self.progress.step
        self.progress.step += len(loop)
        self.progress.pending.append((losses, norms))
        passed = self.progress.step // _STEPS_BETWEEN_CHECKS
        return before == 0 or passed > before // _STEPS_BETWEEN_CHECKS

    def _count_building(self, loop, seconds):
        self.is_built = True
        self.progress.building_seconds += seconds
        self.progress.building_examples += sum(len(b.indices) for b in loop)

    def _check(self, epoch):
        """Reads the results of the steps since the last check.

        Called before each validation and snapshot, so that weights after a bad
        step are never saved.

        Raises:
            NonFiniteError: If a loss or a gradient is not finite.
        """
        problem = self.progress.bad_step(self.trainer)
        if problem:
            raise NonFiniteError(problem)
        losses = np.concatenate([losses for losses, _ in self.progress.pending])
        self.progress.skipped_steps += sum(
            int((~finite.are_finite(norms)).sum())
            for _, norms in self.progress.pending
        )
        self.progress.pending = []
        mean = float(np.mean(losses, dtype="float64"))
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
        self._log(record)
        self.bar.set_description(f"epoch {epoch + 1}, loss {mean:.3f}")

    @property
    def _loss_scale(self):
        return self.trainer.optimizer.loss_scale

    def _validate(self, epoch, norms):
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
        if self._is_to_keep(values[name]):
            weights = self.progress.finite_weights(self.trainer)
            self.progress.best = len(self.progress.history) - 1
            self.progress.best_weights = weights
            self.predictions = predictions
            self.save_best(values)

    def _log(self, record):
        self.log(record)
        self.callbacks.note(record)

    def _is_to_keep(self, value):
        """Returns whether to keep the weights of the last validation."""
        if self.progress.step < self.last_phase:
            return False
        if self.progress.best is None or self.settings.keep == "last":
            return True
        return value > self._best["validation"][self.trainer.metric_names[0]]

    def _stops_early(self):
        patience = self.settings.early_stopping_patience
        if patience is None or self.progress.best is None:
            return False
        if self.settings.keep == "last":
            return False
        since_best = len(self.progress.history) - 1 - self.progress.best
        return since_best >= patience

    def _summary(self):
        name = self.trainer.metric_names[0]
        done = self.batches[: self.progress.step]
        padding = batch_plan.padding_fraction(done, self.train.sequence_lengths)
        metrics = [e["validation"][name] for e in self.progress.history]
        skipped = {"skipped_steps": self.progress.skipped_steps}
        return {
            "validation": self._best["validation"],
            "best_step": self._best["step"],
            "mean_metric": float(np.mean(metrics)),
            "steps": self.progress.step,
            "examples": self._examples,
            "seconds": round(self.progress.seconds, 3),
            "examples_per_second": round(self._examples_per_second(), 2),
            "padding_share": round(padding, 4),
            **({} if self._loss_scale is None else skipped),
        }

    def _examples_per_second(self):
        """Returns the speed, excluding the steps that build the graph."""
        examples = self._examples - self.progress.building_examples
        if not examples:
            return self._examples / self.progress.seconds
        seconds = self.progress.seconds - self.progress.building_seconds
        return examples / seconds


def _plans(plan, settings):
    """Yields each epoch's batches until epochs and steps suffice."""
    epoch, steps = 0, 0
    while epoch < settings.epochs or steps < (settings.min_steps or 0):
        batches = plan(epoch)
        yield batches
        epoch, steps = epoch + 1, steps + len(batches)


def _first_steps(plans, max_steps):
    """Returns each epoch's batches, at most `max_steps` in total if given."""
    kept, left = [], max_steps
    for plan in plans:
        plan = plan[:left]
        if not plan:
            break
        kept.append(plan)
        left = None if left is None else left - len(plan)
    return kept
