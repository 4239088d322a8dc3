"""The progress of a run, and how it is saved to and read from checkpoints."""

import dataclasses
import itertools
from typing import TYPE_CHECKING
from typing import Any
from typing import Self

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.training import finite

if TYPE_CHECKING:
    import keras

    from tf_adapters.training.trainer_protocol import TrainerProtocol

# Number of steps between checks. A check waits for the device, because it reads
# losses and gradient norms.
_STEPS_BETWEEN_CHECKS = 20


@dataclasses.dataclass
class Progress:
    """The progress of a run, except for current weights and the optimizer.

    Attributes:
        step: Number of steps done.
        history: List of the records of all validations, oldest first.
        best: Index in `history` of the validation whose weights are kept, or
            `None` if there is none yet.
        best_weights: The kept weights, one array for each of the trainer's
            variables.
        pending: Losses and gradient norms of the steps that were not checked
            yet: one pair of arrays for each device call.
        seconds: Time spent in steps.
        skipped_steps: Number of checked steps that were skipped because their
            float16 gradients overflowed.
        building_seconds: Part of `seconds` spent in each process's first steps,
            which build the graph.
        building_examples: Number of examples in those steps.
        epoch: Number of the current epoch.
    """

    step: int = 0
    history: list[Any] = dataclasses.field(default_factory=list)
    best: int | None = None
    best_weights: list[Any] = dataclasses.field(default_factory=list)
    pending: list[Any] = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    skipped_steps: int = 0
    building_seconds: float = 0.0
    building_examples: int = 0
    epoch: int = 0

    @property
    def best_record(self) -> dict[str, Any]:
        """The record in `history` of the validation whose weights are kept."""
        best: Any = self.best
        return self.history[best]

    def is_better(self, values: dict[str, float], metric: str) -> bool:
        """Returns whether a validation is better than the best so far.

        If their metric is the same, the lower loss is better, provided that
        `train.evaluate_loss` is on.

        Args:
            values: Metrics of the new validation.
            metric: Name of the metric that selects the weights.
        """
        if self.best is None:
            return True
        best = self.best_record["validation"]
        if "loss" in values and values[metric] == best[metric]:
            return values["loss"] < best["loss"]
        return values[metric] > best[metric]

    def summary(self, metric: str, examples: int) -> dict[str, Any]:
        """Returns a dict with the results so far, such as the best metrics.

        Args:
            metric: Name of the metric that selects the weights.
            examples: Number of examples seen so far.
        """
        metrics = [record["validation"][metric] for record in self.history]
        return {
            "validation": self.best_record["validation"],
            "best_step": self.best_record["step"],
            "mean_metric": float(np.mean(metrics)),
            "steps": self.step,
            "examples": examples,
            "seconds": round(self.seconds, 3),
            "examples_per_second": round(self._speed(examples), 2),
        }

    def _speed(self, examples: int) -> float:
        """Returns the speed of training, in examples per second.

        `examples` is the number of examples seen so far. Steps that built a
        graph are left out, unless there are no others.
        """
        timed = examples - self.building_examples
        if not timed:
            return examples / self.seconds
        return timed / (self.seconds - self.building_seconds)

    def count(self, steps: int, losses: Tensor, norms: Tensor) -> bool:
        """Adds the steps of a device call. Returns whether a check is due.

        Args:
            steps: Integer. Number of steps of the device call.
            losses: Array `(steps,)`.
            norms: Norms of the gradients, array `(steps, variables)`.
        """
        before = self.step
        self.step += steps
        self.pending.append((losses, norms))
        passed = self.step // _STEPS_BETWEEN_CHECKS
        return before == 0 or passed > before // _STEPS_BETWEEN_CHECKS

    def check(self, trainer: "TrainerProtocol") -> float:
        """Checks all steps since the last check, and returns their mean loss.

        Raises:
            NonFiniteError: If a loss or a gradient is not finite.
        """
        self._check_pending(trainer)
        losses = np.concatenate([losses for losses, _ in self.pending])
        self.skipped_steps += sum(
            int((~finite.are_finite(norms)).sum()) for _, norms in self.pending
        )
        self.pending = []
        return float(np.mean(losses, dtype="float64"))

    def _check_pending(self, trainer: "TrainerProtocol") -> None:
        if not self.pending:
            return
        losses, norms = (
            np.concatenate([np.asarray(value) for value in values])
            for values in zip(*self.pending, strict=True)
        )
        first = self.step - len(losses) + 1
        finite.check_steps(trainer, first, losses, norms, self.epoch)

    def finite_weights(self, trainer: "TrainerProtocol") -> list[np.ndarray]:
        """Returns the trainer's current weights, one array per variable.

        Raises:
            NonFiniteError: If a weight is not finite. The message names it.
        """
        weights = read_values(trainer.variables)
        finite.check_weights(
            trainer.names, weights, self.step, self.epoch, trainer.seed
        )
        return weights

    def write(
        self, trainer: "TrainerProtocol"
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Returns a checkpoint: a dict of arrays, and a dict of plain values.

        The arrays include the trained weights and the optimizer's variables.
        One of these is the number of steps, which determines the learning rate
        and the dropout seeds.

        Raises:
            NonFiniteError: If a loss, a gradient or a weight is not finite.
        """
        self._check_pending(trainer)
        arrays = {
            "weights": self.finite_weights(trainer),
            "optimizer": read_values(trainer.optimizer.variables),
            "best": self.best_weights,
            "losses": [np.asarray(losses) for losses, _ in self.pending],
            "norms": [np.asarray(norms) for _, norms in self.pending],
        }
        tensors = {
            f"{part}/{number}": array
            for part, some in arrays.items()
            for number, array in enumerate(some)
        }
        return tensors, {name: getattr(self, name) for name in _PLAIN}

    @classmethod
    def read(cls, checkpoint: Any, trainer: "TrainerProtocol") -> Self:
        """Restores a trainer's state from a checkpoint.

        Args:
            checkpoint: `Checkpoint`.
            trainer: See `TrainerProtocol`. Its optimizer must exist.

        Returns:
            The `Progress` at the checkpoint.

        Raises:
            UserError: If the checkpoint lacks a value.
        """
        # Checkpoints of earlier versions do not have `skipped_steps`.
        needed = [name for name in _PLAIN if name != "skipped_steps"]
        lacking = [name for name in needed if name not in checkpoint.state]
        if lacking:
            raise UserError(
                f"The checkpoint after step {checkpoint.step} is damaged: it "
                f"lacks `{lacking[0]}`. Remove its folder to resume from the "
                "one before it."
            )
        weights, optimizer, best, losses, norms = (
            _part(checkpoint.tensors, name)
            for name in ("weights", "optimizer", "best", "losses", "norms")
        )
        assign_values(trainer.variables, weights)
        assign_values(trainer.optimizer.variables, optimizer)
        return cls(
            step=checkpoint.step,
            best_weights=best,
            pending=list(zip(losses, norms, strict=True)),
            **{n: checkpoint.state[n] for n in _PLAIN if n in checkpoint.state},
        )


_PLAIN = (
    *("history", "best", "seconds", "skipped_steps"),
    *("building_seconds", "building_examples"),
)


def _part(tensors: dict[str, np.ndarray], name: str) -> list[np.ndarray]:
    """Returns a list of the arrays stored as `name/0`, `name/1` and so on."""
    names = (f"{name}/{number}" for number in itertools.count())
    found = itertools.takewhile(tensors.__contains__, names)
    return [tensors[key] for key in found]


def read_values(variables: "list[keras.Variable]") -> list[np.ndarray]:
    """Returns a list with the value of each variable as a NumPy array.

    The values of scalar variables are arrays of rank 0.
    """
    return [np.asarray(variable.numpy()) for variable in variables]


def assign_values(
    variables: "list[keras.Variable]", arrays: list[np.ndarray]
) -> None:
    """Assigns a list of arrays to a list of variables."""
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)
