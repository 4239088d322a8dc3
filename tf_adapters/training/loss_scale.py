"""The factor of a loss that keeps float16 gradients from becoming zero."""

import keras
import tensorflow as tf

# As `keras.optimizers.LossScaleOptimizer`.
_FIRST = 2.0**15
_STEPS_BETWEEN_GROWTHS = 2000


class LossScale:
    """A loss scale that is doubled now and then, and halved when it overflows.

    Float16 has no number between 0 and 6e-8, and none above 65,504. So the loss
    is multiplied by the scale, and the gradients are divided by it as soon as
    they are float32. The scale is halved, and the step is skipped, if a
    gradient is not finite. It is doubled after 2,000 steps without that.

    This is what `keras.optimizers.LossScaleOptimizer` does. That one divides
    when it applies the gradients, which is too late here: they are clipped, and
    their norms are logged, before.

    Args:
        optimizer: A Keras optimizer, built. The scale's variables become its
            own, and so they are in checkpoints.

    Attributes:
        scale: Scalar variable.
        finite_steps: Integer variable. Steps since the last change.
    """

    def __init__(self, optimizer):
        self.scale = optimizer.add_variable(
            (), keras.initializers.Constant(_FIRST), "float32", name="scale"
        )
        self.finite_steps = optimizer.add_variable(
            (), "zeros", "int32", name="finite_steps"
        )

    def read(self):
        """Returns the scale as a number."""
        return float(self.scale.numpy())

    def scaled(self, loss):
        """Returns a loss times the scale."""
        return loss * self.scale.value

    def unscaled(self, gradients):
        """Returns gradients of a scaled loss, divided by the scale."""
        return [gradient / self.scale.value for gradient in gradients]

    def apply_if_finite(self, norms, apply):
        """Applies gradients and counts the step, or skips it.

        It is called where all replicas are one, outside of `strategy.run`: not
        every strategy updates variables in a condition within a replica.

        Args:
            norms: Norms of the gradients that were summed over replicas, so
                that all replicas decide alike.
            apply: Function without arguments.
        """
        tf.cond(
            tf.reduce_all(tf.math.is_finite(norms)),
            lambda: self._after_finite(apply),
            self._after_overflow,
        )

    def _after_finite(self, apply):
        apply()
        steps = self.finite_steps.value + 1
        grows = steps >= _STEPS_BETWEEN_GROWTHS
        scale = self.scale.value
        self.scale.assign(tf.where(grows, 2 * scale, scale))
        self.finite_steps.assign(tf.where(grows, 0, steps))

    def _after_overflow(self):
        self.scale.assign(self.scale.value / 2)
        self.finite_steps.assign(0)
