"""Loss scaling under Keras's `fit` if the encoder computes in float16.

Keras scales the loss only if the model's own dtype policy is `mixed_float16`.
Here the model is float32, and only the encoder within it is float16.
"""

import logging
from typing import Any

import keras
from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.models.replicas import sum_over_replicas

_LOGGER = logging.getLogger(__name__)


@keras.saving.register_keras_serializable("tf_adapters")
class LossScaleOptimizer(keras.optimizers.LossScaleOptimizer):
    """Keras's loss scale optimizer, which also counts the skipped steps.

    A step is skipped if its gradients are not finite. Under a `tf.distribute`
    strategy, Keras checks only the first replica's gradients, before they are
    summed. Here all replicas skip a step if any replica has to.

    Attributes:
        skipped_steps: Integer variable. Number of steps skipped so far.
    """

    def build(self, var_list: list[keras.Variable]) -> None:
        self.skipped_steps = self.add_variable(
            shape=(),
            dtype="int",
            aggregation="only_first_replica",
            name="skipped_steps",
        )
        super().build(var_list)

    def apply(
        self,
        grads: list[Tensor | None],
        trainable_variables: list[keras.Variable] | None = None,
    ) -> None:
        if trainable_variables is not None and not self.built:
            self.build(trainable_variables)
        bad_replicas = sum_over_replicas(self._is_skipped(grads))
        divisor = ops.where(bad_replicas > 0, float("nan"), 1.0)
        grads = [None if g is None else ops.divide(g, divisor) for g in grads]
        self.skipped_steps.assign_add(self._is_skipped(grads))
        super().apply(grads, trainable_variables)

    def stateless_apply(
        self,
        optimizer_variables: list[Tensor],
        grads: list[Tensor | None],
        trainable_variables: list[Tensor],
    ) -> tuple[list[Tensor], list[Tensor]]:
        # Keras's type annotation says, wrongly, that the method returns `None`.
        inherited: Any = super()
        trained, values = inherited.stateless_apply(
            optimizer_variables, grads, trainable_variables
        )
        skipped = self._is_skipped(grads)
        return trained, [
            value + skipped if variable is self.skipped_steps else value
            for variable, value in zip(self.variables, values, strict=True)
        ]

    def _is_skipped(self, grads: list[Tensor | None]) -> Tensor:
        finite = self.check_finite(grads)
        return ops.cast(ops.logical_not(finite), self.skipped_steps.dtype)


def with_loss_scale(optimizer: Any) -> keras.optimizers.Optimizer | None:
    """Returns an optimizer that scales the loss.

    Args:
        optimizer: As in `compile`. If it already scales the loss, it is
            returned unchanged.
    """
    optimizer = keras.optimizers.get(optimizer)
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer | None):
        return optimizer
    return LossScaleOptimizer(optimizer, name="loss_scale_optimizer")


def count_skipped(model: keras.Model) -> int:
    """Returns how many steps a model's optimizer has skipped so far."""
    optimizer = model.optimizer if model.compiled else None
    if isinstance(optimizer, LossScaleOptimizer) and optimizer.built:
        return int(optimizer.skipped_steps.numpy())
    return 0


def say_skipped(model: keras.Model, before: int) -> None:
    """Logs how many steps `fit` skipped, if any.

    Args:
        model: Keras model.
        before: Return value of `count_skipped` before `fit`.
    """
    skipped = count_skipped(model) - before
    if skipped:
        _LOGGER.warning(
            "%s steps changed nothing: their float16 gradients overflowed. The "
            "loss scale is now %g.",
            f"{skipped:,}",
            model.optimizer.dynamic_scale.numpy(),
        )
