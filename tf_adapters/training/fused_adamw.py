"""AdamW with one TensorFlow operation for the update of a weight."""

from typing import Any

import tensorflow as tf

from tf_adapters.training.optimizers import AdamWOfSums


class FusedAdamW(AdamWOfSums):
    """AdamW that computes the same updates as Keras's by fewer operations.

    Keras writes about 25 operations for each weight into the graph of a
    training step. This takes longer than the step itself if there are many
    small weights, as in adapters. Here there are three, and two more for a
    weight that decays. What is the same for all weights is computed once.

    Args:
        schedule: `LearningRateSchedule`.
        **kwargs: See `keras.optimizers.AdamW`.
    """

    def _apply_weight_decay(self, variables: Any) -> None:
        """Does nothing: `update_step` decays each weight before its update."""

    def _backend_update_step(
        self,
        grads: list[tf.Tensor],
        trainable_variables: list[Any],
        learning_rate: tf.Tensor,
    ) -> None:
        steps: Any = self.iterations
        step = tf.cast(steps.value + 1, tf.float32)
        powers = [tf.pow(beta, step) for beta in (self.beta_1, self.beta_2)]
        # Keras passes its argument `learning_rate` on to `update_step`.
        super()._backend_update_step(
            grads, trainable_variables, (learning_rate, *powers)
        )

    def update_step(
        self,
        gradient: tf.Tensor,
        variable: tf.Variable,
        learning_rate: tuple[tf.Tensor, tf.Tensor, tf.Tensor],
    ) -> None:
        """Updates a weight and its moments.

        Args:
            gradient: Gradient of the weight.
            variable: The weight.
            learning_rate: The learning rate, and the two betas to the power of
                the number of the step, which starts at 1.
        """
        # TensorFlow ends the process if the types differ.
        gradient, rate, first_power, second_power = (
            tf.cast(one, variable.dtype) for one in (gradient, *learning_rate)
        )
        if self._use_weight_decay(variable):
            variable.assign_sub(variable * self.weight_decay * rate)
        index = self._get_variable_index(variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=first_power,
            beta2_power=second_power,
            lr=rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )
