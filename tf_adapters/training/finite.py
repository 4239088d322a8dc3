"""Raises errors if losses, gradients, weights or outputs are not finite."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from tf_adapters.common.errors import NonFiniteError
from tf_adapters.common.types import Tensor

if TYPE_CHECKING:
    from tf_adapters.training.loss_scale import LossScale
    from tf_adapters.training.trainer_protocol import TrainerProtocol

_ADVICE = "Lower --learning_rate, compute in float32 if train.precision is "
_ADVICE += "another, or look at the examples of that step "


def check_steps(
    trainer: "TrainerProtocol",
    first: int,
    losses: np.ndarray,
    norms: np.ndarray,
    epoch: int,
) -> None:
    """Raises a `NonFiniteError` that names the first bad step, if any.

    Args:
        trainer: See `TrainerProtocol`.
        first: Number of the step that `losses` begins with.
        losses: Array `(steps,)`.
        norms: Norms of the gradients, array `(steps, variables)`.
        epoch: Number of the epoch.
    """
    bad = ~np.isfinite(losses)
    if not _may_skip(trainer.optimizer.loss_scale):
        bad |= ~are_finite(norms)
    if not bad.any():
        return
    place = int(np.argmax(bad))
    step, loss = first + place, float(losses[place])
    what = f"The loss of step {step} is {loss}."
    if np.isfinite(loss):
        what = (
            f"The gradient of step {step} is not finite, though its loss is "
            f"{loss:.6g}: {_bad_norms(trainer.names, norms[place])}."
        )
    raise NonFiniteError(
        f"{what} Steps before it were finite. {_ADVICE}(epoch {epoch}, seed "
        f"{trainer.seed})."
    )


def are_finite(norms: Tensor) -> np.ndarray:
    """Returns, for each step, whether the norms of all gradients are finite.

    Args:
        norms: `(steps, variables)`, or `(variables,)` for a single step.
    """
    return np.asarray(np.isfinite(np.asarray(norms)).all(axis=-1))


def _may_skip(loss_scale: "LossScale | None") -> bool:
    """Returns whether infinite gradients are a skipped step, not an error.

    A `LossScale` skips the step if the scaled loss overflows. If the scale is
    below 1, it does not enlarge the loss, so an overflow is an error.
    """
    return loss_scale is not None and loss_scale.read() >= 1


def _bad_norms(names: list[str], norms: np.ndarray) -> str:
    (bad,) = np.nonzero(~np.isfinite(norms))
    named = [f"`{names[i]}` has norm {norms[i]}" for i in bad[:3]]
    more = f", and {len(bad) - 3} more" if len(bad) > 3 else ""
    return ", ".join(named) + more


def check_weights(
    names: list[str],
    weights: list[np.ndarray],
    step: int,
    epoch: int,
    seed: int,
) -> None:
    """Raises a `NonFiniteError` that names the first bad weight, if any.

    Args:
        names: Names of the trained variables.
        weights: List with an array for each of these variables.
        step: Number of steps done. This and the next two are for the message.
        epoch: Number of the epoch.
        seed: Seed of the run.
    """
    for name, weight in zip(names, weights, strict=False):
        if not np.isfinite(weight).all():
            raise NonFiniteError(
                f"Weight `{name}` after step {step} is not finite, though "
                "losses and gradients until then were. "
                f"{_ADVICE}(epoch {epoch}, seed {seed})."
            )


def check_outputs(outputs: Iterable[np.ndarray], first: int = 0) -> None:
    """Raises a `NonFiniteError` if a model's outputs are NaN.

    A class would be predicted from them, and metrics computed.

    Args:
        outputs: Array, or list of arrays, with an entry for each example.
        first: Index of the first example, for the message. Defaults to 0.
    """
    bad = [i for i, output in enumerate(outputs) if np.isnan(output).any()]
    if bad:
        raise NonFiniteError(
            f"The model's outputs are NaN for {len(bad):,} examples, first for "
            f"example {first + bad[0]}. Train again with a lower learning "
            "rate, or compute in float32."
        )
