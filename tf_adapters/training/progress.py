"""What a run has done so far, into a checkpoint and out of it again."""

import dataclasses
import itertools

import numpy as np

from tf_adapters.common.errors import NonFiniteError
from tf_adapters.common.errors import UserError
from tf_adapters.training import finite


@dataclasses.dataclass
class Progress:
    """What a run has done so far.

    Attributes:
        step: Steps done.
        history: Records of the validations, oldest first.
        best: Index in `history` of the validation whose weights are kept, or
            `None` before the first one that counts.
        best_weights: Those weights, one array for each of the trainer's
            variables.
        pending: Losses and gradient norms of the steps that nobody has looked
            at yet: pairs of arrays, one pair for each call of the device.
        seconds: Time spent in steps.
        skipped_steps: How many of the steps that were looked at were skipped,
            because their float16 gradients overflowed.
        building_seconds: The part of it that went into each process's first
            steps, which build the graph.
        building_examples: Examples in those steps.
        epoch: Number of the epoch that is under way.
    """

    step: int = 0
    history: list = dataclasses.field(default_factory=list)
    best: int | None = None
    best_weights: list = dataclasses.field(default_factory=list)
    pending: list = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    skipped_steps: int = 0
    building_seconds: float = 0.0
    building_examples: int = 0
    epoch: int = 0

    def bad_step(self, trainer):
        """Returns what is wrong with the steps in `pending`, or ""."""
        if not self.pending:
            return ""
        losses, norms = (
            np.concatenate([np.asarray(value) for value in values])
            for values in zip(*self.pending, strict=True)
        )
        first = self.step - len(losses) + 1
        return finite.bad_step(trainer, first, losses, norms, self.epoch)

    def finite_weights(self, trainer):
        """Returns the trained weights, one array for each variable.

        Raises:
            NonFiniteError: If one is not finite; names it.
        """
        weights = read_values(trainer.variables)
        problem = finite.bad_weight(trainer, weights, self.step, self.epoch)
        if problem:
            raise NonFiniteError(problem)
        return weights

    def write(self, trainer):
        """Returns what a checkpoint holds: arrays by name, and plain values.

        Among the arrays are the trained weights and the optimiser's variables
        (and with its count of steps the learning rate and dropout's seeds).

        Raises:
            NonFiniteError: If a loss, a gradient or a weight is not finite.
        """
        problem = self.bad_step(trainer)
        if problem:
            raise NonFiniteError(problem)
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
    def read(cls, checkpoint, trainer):
        """Takes a trainer, its optimiser made, to where a checkpoint was.

        Args:
            checkpoint: `Checkpoint`.
            trainer: See `TrainerProtocol`.

        Returns:
            `Progress` until then.

        Raises:
            UserError: If the checkpoint lacks a value.
        """
        # Checkpoints of earlier versions count no skipped steps.
        needed = [name for name in _PLAIN if name != "skipped_steps"]
        lacking = [name for name in needed if name not in checkpoint.state]
        if lacking:
            raise UserError(
                f"The checkpoint after step {checkpoint.step} is damaged: it "
                f"lacks `{lacking[0]}`. Remove its folder to go on from the "
                "one before."
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


def _part(tensors, name):
    """Returns the arrays `name/0`, `name/1` and so on."""
    names = (f"{name}/{number}" for number in itertools.count())
    found = itertools.takewhile(tensors.__contains__, names)
    return [tensors[key] for key in found]


def read_values(variables):
    """Returns variables as arrays; scalars too, which NumPy has as numbers."""
    return [np.asarray(variable.numpy()) for variable in variables]


def assign_values(variables, arrays):
    """Gives variables the values of as many arrays."""
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)
