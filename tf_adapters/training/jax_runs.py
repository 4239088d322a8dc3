"""Steps of several runs at once: one JAX program, mapped over the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import jax
from jax import numpy as jnp
import keras
import numpy as np

from tf_adapters.training import jax_step
from tf_adapters.training.jax_devices import JaxDevices
from tf_adapters.training.jax_step import JaxStep
from tf_adapters.training.optimizers import make_optimizer

if TYPE_CHECKING:
    from tf_adapters.common.types import Tensor
    from tf_adapters.config.settings import TrainConfig

    Features = dict[str, np.ndarray]


class GivenRate(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate that is the value of a variable, whatever the step.

    Args:
        rate: Scalar `keras.Variable`.
    """

    def __init__(self, rate: keras.Variable) -> None:
        self.rate = rate

    def __call__(self, step: Tensor) -> Tensor:
        return keras.ops.convert_to_tensor(self.rate)


class JaxRuns:
    """Trains runs of one model that differ in seeds, rates, data and weights.

    A step of all runs is the step of `JaxStep`, mapped over the runs by
    `jax.vmap`. Each run therefore has the results that it has alone, but for
    rounding. Small models leave a GPU mostly idle: twenty runs at once then
    take little longer than one.

    Args:
        model: `AdapterModel` with a head, whose method trains in one phase. Its
            weights are neither read nor changed.
        settings: `TrainConfig` of the runs. Its learning rate is not read.
        seeds: Seed of each run.
        starts: The first values of all variables of the model, in the order of
            `model.variables`, one list for each run. Values that are the same
            object in all runs are stored once.

    Attributes:
        trained: Values of the trained variables, by name, with the shape
            `(runs, ...)`.
    """

    def __init__(
        self,
        model: Any,
        settings: TrainConfig,
        seeds: list[int],
        starts: list[list[Tensor]],
    ) -> None:
        self.model = model
        self.names, variables = zip(
            *model.trained_variables().items(), strict=True
        )
        seed = keras.Variable(0, dtype="uint32", trainable=False)
        rate = keras.Variable(0.0, trainable=False)
        # The rates are given, so that runs of other tasks, with other numbers
        # of steps, can use the same compiled program.
        self.optimizer = make_optimizer(
            settings, [(1, 1.0)], list(variables), schedule=GivenRate(rate)
        )
        devices = JaxDevices(keras.distribution.list_devices()[:1])
        step = JaxStep(
            *(model, devices, list(variables), self.optimizer),
            *(settings, seed, set()),
        )
        step.constants += [seed, rate]
        self._step, self._count = step, len(variables)
        self._place_values(seeds, starts)
        self._train = jax.jit(
            jax.vmap(
                lambda state, constants, features: step.compute(
                    state, constants, features, 0
                ),
                in_axes=(0, self._axes, 0),
            ),
            donate_argnums=0,
        )
        self._forward = jax.jit(
            jax.vmap(self._outputs, in_axes=(0, self._axes, 0))
        )

    def _place_values(
        self, seeds: list[int], starts: list[list[Tensor]]
    ) -> None:
        """Sets the values of all variables, and which differ between runs."""
        places = {id(v): n for n, v in enumerate(self.model.variables)}
        runs = len(seeds)

        def values(variable: keras.Variable) -> list[Tensor]:
            place = places.get(id(variable))
            if place is None:  # A slot of the optimizer.
                return [variable.value] * runs
            return [start[place] for start in starts]

        self._state = [jnp.stack(values(v)) for v in self._step.state]
        *constants, _, _ = self._step.constants
        self._axes, self._constants = [], []
        for variable in constants:
            own = values(variable)
            differs = any(value is not own[0] for value in own)
            self._axes.append(0 if differs else None)
            self._constants.append(jnp.stack(own) if differs else own[0])
        self._axes += [0, 0]
        self._constants.append(jnp.array(seeds, "uint32"))

    @property
    def trained(self) -> dict[str, Tensor]:
        values = self._state[: self._count]
        return dict(zip(self.names, values, strict=True))

    def train(self, features: Features, rates: np.ndarray) -> tuple[Any, Any]:
        """Takes a step; returns losses `(runs,)` and norms `(runs, variables)`.

        Does not wait for the device.

        Args:
            features: Features of a batch of each run, as from
                `arrays.features`, with the shape `(runs, rows, ...)`.
            rates: Learning rate of each run, `(runs,)`.
        """
        constants = [*self._constants, jnp.asarray(rates, "float32")]
        self._state, losses, norms = self._train(
            self._state, constants, features
        )
        return losses, norms

    def outputs(self, features: Features) -> Tensor:
        """Returns the outputs of a batch, `(runs, rows, ...)`; see `train`."""
        constants = [*self._constants, jnp.zeros(len(self._constants[-1]))]
        inputs = jax_step.inputs_of(features)
        return self._forward(self._state[: self._count], constants, inputs)

    def _outputs(
        self, trained: list[Tensor], constants: list[Tensor], inputs: Any
    ) -> Tensor:
        variables = [*self._step.variables, *self._step.constants]
        mapping = zip(variables, [*trained, *constants], strict=True)
        with keras.StatelessScope(state_mapping=mapping):
            return self.model(inputs, training=False)

    def use(self, trained: dict[str, Tensor]) -> None:
        """Sets the values of the trained variables; see `trained`."""
        self._state[: self._count] = [trained[name] for name in self.names]
