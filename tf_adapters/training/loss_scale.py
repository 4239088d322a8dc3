"""Loss scaling, which prevents float16 gradients from becoming zero."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

# As in `keras.optimizers.LossScaleOptimizer`.
_FIRST = 2.0**15
_STEPS_BETWEEN_GROWTHS = 2000


class LossScale:
    """A loss scale that grows regularly and is halved on overflow.

    Float16 has no numbers between 0 and 6e-8, and none above 65,504. The loss
    is therefore multiplied by the scale, and gradients are divided by it once
    they are float32. If a gradient is not finite, the step is skipped and the
    scale is halved. After 2,000 steps without overflow, the scale is doubled.

    `keras.optimizers.LossScaleOptimizer` does the same, but divides when it
    applies the gradients. This is too late here, because gradients are clipped
    and their norms logged before that.

    Args:
        optimizer: A built Keras optimizer. The scale's variables are added to
            it, so that checkpoints include them.

    Attributes:
        scale: Scalar variable. The current scale.
        finite_steps: Integer variable. Number of steps since the scale last
            changed.
    """

    def __init__(self, optimizer: keras.optimizers.Optimizer) -> None:
        first: Any = keras.initializers.Constant(_FIRST)
        self.scale = optimizer.add_variable((), first, "float32", name="scale")
        self.finite_steps = optimizer.add_variable(
            (), "zeros", "int32", name="finite_steps"
        )

    def read(self) -> float:
        """Returns the current scale as a Python float."""
        return float(self.scale.numpy())

    def scaled(self, loss: tf.Tensor) -> tf.Tensor:
        """Returns a loss times the scale."""
        return loss * self.scale.value

    def unscaled(self, gradients: list[tf.Tensor]) -> list[tf.Tensor]:
        """Divides the gradients of a scaled loss by the scale."""
        return [gradient / self.scale.value for gradient in gradients]

    def apply_if_finite(
        self, norms: tf.Tensor, apply: Callable[[], Any]
    ) -> None:
        """Applies the gradients if they are finite, else skips the step.

        The scale can change in both cases. Call this outside of `strategy.run`,
        once for all replicas: not every strategy can update variables in a
        condition within a replica.

        Args:
            norms: Norms of the gradients after summing over replicas, so that
                all replicas make the same decision.
            apply: Function without arguments that applies the gradients.
        """
        tf.cond(
            tf.reduce_all(tf.math.is_finite(norms)),
            lambda: self._after_finite(apply),
            self._after_overflow,
        )

    def _after_finite(self, apply: Callable[[], Any]) -> None:
        apply()
        steps = self.finite_steps.value + 1
        grows = steps >= _STEPS_BETWEEN_GROWTHS
        scale = self.scale.value
        self.scale.assign(tf.where(grows, 2 * scale, scale))
        self.finite_steps.assign(tf.where(grows, 0, steps))

    def _after_overflow(self) -> None:
        self.scale.assign(self.scale.value / 2)
        self.finite_steps.assign(0)
