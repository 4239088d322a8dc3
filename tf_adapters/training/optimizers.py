"""AdamW whose learning rate has a linear warm-up and, optionally, a decay."""

from collections.abc import Iterable
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.types import Tensor

if TYPE_CHECKING:
    from tf_adapters.config.settings import TrainConfig
    from tf_adapters.training.loss_scale import LossScale


@keras.saving.register_keras_serializable("tf_adapters")
class LinearWarmupAndDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate that grows from 0 to `peak`, then falls to 0 or stays.

    Args:
        peak: Highest learning rate.
        total_steps: Number of steps after which the rate is 0, if it decays.
        warmup_steps: Number of steps until the rate is `peak`.
        decays: Whether the rate decays after the warm-up. Defaults to `True`.
            If `False`, it stays at `peak`.
    """

    def __init__(
        self,
        peak: float,
        total_steps: int,
        warmup_steps: int,
        decays: bool = True,
    ) -> None:
        self.peak = peak
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps
        self.decays = decays

    def __call__(self, step: Tensor) -> Tensor:
        step = ops.cast(step, "float32")
        up = ops.ones_like(step)
        if self.warmup_steps:
            up = step / self.warmup_steps
        if not self.decays:
            return self.peak * ops.clip(up, 0, 1)
        down = (self.total_steps - step) / max(
            1, self.total_steps - self.warmup_steps
        )
        return self.peak * ops.clip(ops.minimum(up, down), 0, 1)

    def get_config(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
            "decays": self.decays,
        }


@keras.saving.register_keras_serializable("tf_adapters")
class SequentialSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Two learning rate schedules, one after the other.

    Args:
        first: Schedule for the first `steps` steps.
        steps: Integer. Number of steps of the first schedule.
        second: Schedule for all later steps, the first of which is its step 0.
    """

    def __init__(
        self,
        first: keras.optimizers.schedules.LearningRateSchedule,
        steps: int,
        second: keras.optimizers.schedules.LearningRateSchedule,
    ) -> None:
        self.first = first
        self.steps = steps
        self.second = second

    def __call__(self, step: Tensor) -> Tensor:
        return ops.where(
            step < self.steps, self.first(step), self.second(step - self.steps)
        )

    def get_config(self) -> dict[str, Any]:
        serialize = keras.saving.serialize_keras_object
        return {
            "first": serialize(self.first),
            "steps": self.steps,
            "second": serialize(self.second),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "SequentialSchedule":
        read = keras.saving.deserialize_keras_object
        return cls(
            read(config["first"]), config["steps"], read(config["second"])
        )


class AdamWOfSums(keras.optimizers.AdamW):
    """AdamW for gradients that are already summed over replicas.

    Keras's AdamW sums gradients over replicas as it applies them. The trainer
    sums them earlier, because it clips the sum by its global norm. Summing
    again would move every gradient between devices a second time.
    `tests/training/trainer_test.py` counts the sums.

    Args:
        schedule: `LearningRateSchedule`.
        **kwargs: See `keras.optimizers.AdamW`.

    Attributes:
        loss_scale: `LossScale` if gradients are computed in float16, or else
            `None`.
    """

    def __init__(
        self,
        schedule: keras.optimizers.schedules.LearningRateSchedule,
        **kwargs: Any,
    ) -> None:
        given: Any = schedule
        super().__init__(given, **kwargs)
        self._schedule = schedule
        self.loss_scale: LossScale | None = None

    def rate_of_last_step(self) -> float:
        """Returns the learning rate of the latest step.

        Keras's `learning_rate` is the rate of the next step, which is 0 at the
        end of training.
        """
        steps: Any = self.iterations
        return float(self._schedule(steps - 1))

    def apply_used(
        self,
        gradients: list[Tensor],
        variables: list[keras.Variable],
        used: list[bool],
    ) -> None:
        """Updates the variables that a step uses, and counts the step.

        The other variables keep their values: neither momentum nor weight decay
        changes them.

        Args:
            gradients: List with the gradient of each variable.
            variables: List of variables.
            used: Whether the step uses each variable.
        """
        rows = zip(gradients, variables, used, strict=True)
        chosen = [(gradient, v) for gradient, v, is_used in rows if is_used]
        if chosen:
            self.apply(*map(list, zip(*chosen, strict=True)))
        else:
            # Keras would not count the step.
            steps: Any = self.iterations
            steps.assign_add(1)

    def _all_reduce_sum_gradients(
        self, grads_and_vars: Iterable[tuple[Tensor, keras.Variable]]
    ) -> list[tuple[Tensor, keras.Variable]]:
        return list(grads_and_vars)


def make_optimizer(
    train: "TrainConfig",
    phases: list[tuple[int, float]],
    variables: list[keras.Variable],
    scales_loss: bool = False,
    kind: type[AdamWOfSums] = AdamWOfSums,
    schedule: keras.optimizers.schedules.LearningRateSchedule | None = None,
) -> AdamWOfSums:
    """Returns a built AdamW for gradients that are summed over replicas.

    Weight decay applies only to some weights, see `has_decay`. Epsilon is 1e-8,
    as in PyTorch (Keras has 1e-7).

    Args:
        train: `TrainConfig`.
        phases: List of one or two pairs: the number of steps of a phase, and a
            factor for its learning rate. Each phase warms up and decays.
        variables: Keras variables to train.
        scales_loss: Whether to add a `LossScale` to the optimizer, which
            float16 requires. Defaults to `False`.
        kind: The class of the optimizer. Defaults to `AdamWOfSums`.
        schedule: Learning rate schedule. Default: `make_schedule` of `train`
            and `phases`.

    Raises:
        ConfigError: If there are no variables to train.
    """
    if not variables:
        raise ConfigError(
            "There is nothing to train: method and head have no weights that "
            "train. Choose another --method."
        )
    schedule = schedule or make_schedule(train, phases)
    optimizer = kind(schedule, weight_decay=train.weight_decay, epsilon=1e-8)
    optimizer.exclude_from_weight_decay(
        [variable for variable in variables if not has_decay(variable)]
    )
    optimizer.build(variables)
    if scales_loss:
        # Imported here, because it needs TensorFlow.
        from tf_adapters.training.loss_scale import LossScale

        optimizer.loss_scale = LossScale(optimizer)
    return optimizer


def make_schedule(
    train: "TrainConfig", phases: list[tuple[int, float]]
) -> keras.optimizers.schedules.LearningRateSchedule:
    """Returns the learning rate schedule of a run; see `make_optimizer`."""
    schedule: Any
    schedule, *later = [
        LinearWarmupAndDecay(
            train.learning_rate * factor,
            steps,
            int(steps * train.warmup_fraction),
            train.decay == "linear",
        )
        for steps, factor in phases
    ]
    for second in later:
        schedule = SequentialSchedule(schedule, schedule.total_steps, second)
    return schedule


def has_decay(variable: keras.Variable) -> bool:
    """Returns whether weight decay applies: only to kernels and embeddings.

    A fusion's value kernel is excluded, because its own penalty pulls it to the
    identity instead of zero.
    """
    if variable.path.endswith("fusion/value_kernel"):
        return False
    return variable.name.endswith(("kernel", "embeddings"))
