"""The object through which a method handles gates on its weights."""

from typing import TYPE_CHECKING
from typing import Any

if TYPE_CHECKING:
    import numpy as np


class Gating:
    """Prunes, stores and reopens the gated weights of a method.

    Each method has a `Gating` as `gating`. Methods without gates use this base
    class, which has no effect.
    """

    # Multiplies the learning rate in the last phase; see `last_phase_step`.
    last_phase_learning_rate_multiplier = 1.0

    def last_phase_step(self, total_steps: int) -> int:
        """Returns the step after which `start_last_phase` is called, or 0.

        0 means that there is no last phase. If there is one, the best
        checkpoint is selected from this phase only, and the learning-rate
        schedule starts again when the phase begins.

        Args:
            total_steps: Number of training steps of the run.
        """
        return 0

    def start_last_phase(self, model: Any) -> None:
        """Prepares a model for the last phase of training."""

    def reopen(self, model: Any) -> None:
        """Makes a loaded model's fixed gates trainable again."""

    def pack(self, tensors: "dict[str, np.ndarray]") -> "dict[str, np.ndarray]":
        """Returns the tensors in the form that an adapter folder stores.

        Args:
            tensors: Dict from name to array.
        """
        return tensors

    def unpack(
        self,
        tensors: "dict[str, np.ndarray]",
        shapes: dict[str, tuple[int, ...]],
    ) -> "dict[str, np.ndarray]":
        """Restores the tensors that were given to `pack`.

        Args:
            tensors: Dict from name to array, as returned by `pack`.
            shapes: Dict from the name to the shape of each variable of the
                model.

        Raises:
            UserError: If a packed tensor is missing or has a wrong shape, or if
                `tensors` also has a tensor that a packed one replaces. The
                message names the tensor.
        """
        return tensors
