"""One training run: steps, checks, validations, and the best weights kept."""

import time

import numpy as np
import tqdm

from tf_adapters.common.errors import NonFiniteError
from tf_adapters.data.batches import pipeline
from tf_adapters.training import progress

# Losses and gradients are looked at this often: reading waits for the device.
_STEPS_BETWEEN_CHECKS = 20


class Loop:
    """The state of one call of `Trainer.fit`, see there.

    Args:
        trainer: `Trainer`, or what trains several of them.
        train: What the trainer takes: `Examples` or `Mixture`.
        validation: The same.
        log: Function of a dict.
        save_best: Function of a dict of metrics.
        recovery: `Recovery`, or `None` for a run that cannot be gone on with.
    """

    def __init__(
        self, trainer, train, validation, log, save_best, recovery=None
    ):
        self.trainer = trainer
        self.settings = trainer.config.train
        self.train = train
        self.validation = validation
        self.log = log
        self.save_best = save_best
        self.recovery = recovery
        self.plans = _first_steps(
            (trainer.plan(train, e) for e in range(self.settings.epochs)),
            self.settings.max_steps,
        )
        self.total_steps = sum(len(plan) for plan in self.plans)
        self.last_phase = trainer.model.last_phase_step(self.total_steps)
        self.step = 0
        self.examples = 0
        self.done = []
        self.seconds = 0.0
        # The first step of a process builds the graph.
        self.building_seconds = 0.0
        self.building_examples = 0
        self.is_built = False
        self.pending = []
        self.history = []
        self.best = None
        self.best_weights = None

    def run(self):
        """Trains, leaves the best weights in the model, returns a summary."""
        self.trainer.prepare_training(self.total_steps)
        with tqdm.tqdm(
            total=sum(len(b.indices) for plan in self.plans for b in plan),
            unit="ex",
            desc="building the graph",
            dynamic_ncols=True,
        ) as self.bar:
            self._recover()
            first_step = 0
            for epoch, plan in enumerate(self.plans):
                rest = plan[max(0, self.step - first_step) :]
                if rest and not self._stops_early():
                    self._run_epoch(epoch, rest)
                first_step += len(plan)
        progress.assign_values(self.trainer.variables, self.best_weights)
        return self._summary()

    def _recover(self):
        """Goes to where the run was stopped, if it was."""
        if self.recovery is None or self.recovery.checkpoint is None:
            return
        progress.restore(self, self.recovery.checkpoint)
        self.bar.update(self.examples)
        if self.best is not None:
            # A later one may lie there, of steps that are now done again.
            now = progress.values(self.trainer.variables)
            progress.assign_values(self.trainer.variables, self.best_weights)
            self.save_best(self.best["validation"])
            progress.assign_values(self.trainer.variables, now)

    def _summary(self):
        name = self.trainer.metric_names[0]
        padding = pipeline.padding_fraction(
            self.done, self.train.sequence_lengths
        )
        return {
            "validation": self.best["validation"],
            "best_step": self.best["step"],
            "mean_metric": float(
                np.mean([entry["validation"][name] for entry in self.history])
            ),
            "steps": self.step,
            "examples": self.examples,
            "seconds": round(self.seconds, 3),
            "examples_per_second": round(self._examples_per_second(), 2),
            "padding_share": round(padding, 4),
        }

    def _examples_per_second(self):
        """Returns the speed without the steps that build the graph."""
        examples = self.examples - self.building_examples
        if not examples:
            return self.examples / self.seconds
        return examples / (self.seconds - self.building_seconds)

    def _run_epoch(self, epoch, plan):
        started = time.perf_counter()
        loops = list(self._loops(plan))
        results = self.trainer.train_loops(self.train, loops)
        for loop, (losses, norms) in zip(loops, results, strict=True):
            checks = self._count(loop, losses, norms)
            if self.step == self.last_phase:
                self.trainer.model.start_last_phase()
            validates = self._validates(self.step, loop[-1] is plan[-1])
            if validates or checks:
                self._check(epoch)
            if not self.is_built:
                np.asarray(norms)  # Waits for the device.
                self._count_building(loop, time.perf_counter() - started)
            self.seconds += time.perf_counter() - started
            if validates:
                self._validate(epoch, norms[-1])
            if self.recovery is not None:
                self.recovery.after_loop(self, checks)
            if self._stops_early():
                return
            started = time.perf_counter()

    def _loops(self, plan):
        """Yields lists of batches, those that the device does in one call.

        Whatever the host does between steps ends one.
        """
        loop = []
        for step, batch in enumerate(plan, self.step + 1):
            if loop and self._kind(batch) != self._kind(loop[0]):
                yield loop
                loop = []
            loop.append(batch)
            ends = self._validates(step, batch is plan[-1])
            ends |= step == self.last_phase
            if ends or len(loop) == self.settings.steps_per_loop:
                yield loop
                loop = []

    def _kind(self, batch):
        return self.trainer.kind(self.train, batch)

    def _validates(self, step, is_last):
        every = self.settings.validate_every_steps
        return is_last or bool(every and step % every == 0)

    def _count(self, loop, losses, norms):
        """Counts a loop's steps; returns whether it is time to look at them."""
        before = self.step
        self.step += len(loop)
        examples = sum(len(batch.indices) for batch in loop)
        self.examples += examples
        self.done += loop
        self.pending.append((losses, norms))
        self.bar.update(examples)
        passed = self.step // _STEPS_BETWEEN_CHECKS
        return before == 0 or passed > before // _STEPS_BETWEEN_CHECKS

    def _count_building(self, loop, seconds):
        self.is_built = True
        self.building_seconds += seconds
        self.building_examples += sum(len(batch.indices) for batch in loop)

    def _check(self, epoch):
        """Reads what the steps since the last check gave; stops at a bad one.

        It comes before each validation, so that no bad weights are saved.
        """
        losses, norms = (
            np.concatenate([np.asarray(value) for value in values])
            for values in zip(*self.pending, strict=True)
        )
        first = self.step - len(losses) + 1
        for step, (loss, norm) in enumerate(zip(losses, norms, strict=True)):
            self._check_finite(first + step, epoch, float(loss), norm)
        self.pending = []
        mean = float(np.mean(losses, dtype="float64"))
        self.log(
            {
                "step": self.step,
                "epoch": epoch,
                "loss": round(mean, 6),
                "learning_rate": float(self.trainer.optimizer.learning_rate),
                "examples": self.examples,
            }
        )
        self.bar.set_description(f"epoch {epoch + 1}, loss {mean:.3f}")

    def _check_finite(self, step, epoch, loss, norms):
        what = None
        if not np.isfinite(loss):
            what = f"The loss of step {step} is {loss}."
        elif not np.isfinite(norms).all():
            what = (
                f"The gradient of step {step} is not finite, though its loss "
                f"is {loss:.6g}: {self._bad_norms(norms)}."
            )
        if what is not None:
            raise NonFiniteError(
                f"{what} Steps before it were finite. Lower --learning_rate, "
                "compute in float32 if train.precision is another, or look at "
                f"the examples of that step (epoch {epoch}, seed "
                f"{self.trainer.config.seed})."
            )

    def _bad_norms(self, norms):
        names = list(self.trainer.model.trained_variables())
        (bad,) = np.nonzero(~np.isfinite(norms))
        named = [f"`{names[i]}` has norm {norms[i]}" for i in bad[:3]]
        more = f", and {len(bad) - 3} more" if len(bad) > 3 else ""
        return ", ".join(named) + more

    def _validate(self, epoch, norms):
        values = self.trainer.evaluate(self.validation)
        entry = {"step": self.step, "epoch": epoch, "validation": values}
        if self.settings.log_gradient_norms:
            names = self.trainer.model.trained_variables()
            entry["gradient_norms"] = dict(
                zip(names, map(float, np.asarray(norms)), strict=True)
            )
        self.log(entry)
        self.history.append(entry)
        name = self.trainer.metric_names[0]
        self.bar.set_postfix({name: f"{values[name]:.3f}"})
        if self.step < self.last_phase:
            return
        is_best = (
            self.best is None or values[name] > self.best["validation"][name]
        )
        if is_best or self.settings.keep == "last":
            self.best = entry
            self.best_weights = progress.values(self.trainer.variables)
            self.save_best(values)

    def _stops_early(self):
        patience = self.settings.early_stopping_patience
        if patience is None or self.best is None:
            return False
        if self.settings.keep == "last":
            return False
        since_best = len(self.history) - 1 - self.history.index(self.best)
        return since_best >= patience


def _first_steps(plans, max_steps):
    """Returns the epochs' batches, no more than `most` in all, if given."""
    kept, left = [], max_steps
    for plan in plans:
        plan = plan[:left]
        if not plan:
            break
        kept.append(plan)
        left = None if left is None else left - len(plan)
    return kept
