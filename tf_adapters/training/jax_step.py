"""The training step of JAX, a compiled function without side effects."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import jax
from jax import numpy as jnp
from jax.interpreters import partial_eval
import keras

from tf_adapters.layers import stateless_seeds

if TYPE_CHECKING:
    from tf_adapters.common.types import Tensor
    from tf_adapters.config.settings import TrainConfig
    from tf_adapters.training.jax_devices import JaxDevices
    from tf_adapters.training.optimizers import AdamWOfSums

_NOT_INPUTS = ("indices", "targets", "weights")


class JaxStep:
    """Trains a model's variables on batches, like `TrainStep` of TensorFlow.

    Each shape of a batch is compiled once. The compiled function takes the
    values of all variables and returns the new values. JAX reuses the memory of
    the old ones.

    Args:
        model: `AdapterModel` with a head.
        devices: `JaxDevices`.
        variables: List of the variables to train.
        optimizer: `AdamWOfSums`. It may hold other variables, too.
        settings: `TrainConfig`.
        seed: Integer, the seed of the run, or a `keras.Variable` that holds it.
        programs: Set to which to add an entry for each compiled program.
    """

    def __init__(
        self,
        model: Any,
        devices: JaxDevices,
        variables: list[keras.Variable],
        optimizer: AdamWOfSums,
        settings: TrainConfig,
        seed: int | keras.Variable,
        programs: set[tuple[Any, ...]],
    ) -> None:
        self.model = model
        self.variables = variables
        self.optimizer = optimizer
        self.clip_norm = settings.clip_norm
        self.parts = settings.accumulation_steps
        self.seed = seed
        self._programs = programs
        slots: list[Any] = optimizer.variables
        # The variables that a step changes, and all others.
        self.state = [*variables, *slots]
        changed = {id(variable) for variable in self.state}
        self.constants = [v for v in model.variables if id(v) not in changed]
        self._compiled = jax.jit(
            self.compute,
            static_argnums=3,
            donate_argnums=0,
            out_shardings=devices.replicated,
        )

    def run(
        self, features: dict[str, Tensor], left_out: int
    ) -> tuple[Tensor, Tensor]:
        """Trains on a batch; returns the loss and the gradient norms.

        The norms have shape `(variables,)`. Does not wait for the devices.

        Args:
            features: Features of a batch, from `JaxDevices.put`.
            left_out: Number of first blocks without adapters.
        """
        state, loss, norms = self._compiled(
            [v.value for v in self.state],
            [v.value for v in self.constants],
            features,
            left_out,
        )
        for variable, value in zip(self.state, state, strict=True):
            variable.assign(value)
        return loss, norms

    def compute(
        self,
        state: list[Tensor],
        constants: list[Tensor],
        features: dict[str, Tensor],
        left_out: int,
    ) -> tuple[list[Tensor], Tensor, Tensor]:
        """Returns the new state, the loss, and the gradients' norms.

        A pure function, which `run` compiles.

        Args:
            state: Values of the variables in `self.state`.
            constants: Values of the variables in `self.constants`.
            features: See `run`.
            left_out: See `run`.
        """
        shapes = shapes_of(features)
        self._programs.add(("training step", left_out, *shapes))
        count = len(self.variables)
        mapping = [
            *zip(self.state[count:], state[count:], strict=True),
            *zip(self.constants, constants, strict=True),
        ]
        trained = state[:count]

        def loss_of(
            trained: list[Tensor], part: dict[str, Tensor], number: Tensor
        ) -> Tensor:
            own = zip(self.variables, trained, strict=True)
            with keras.StatelessScope(state_mapping=[*mapping, *own]):
                return self._loss(part, number)

        with self.model.without(range(left_out)):
            loss, gradients = self._gradients(loss_of, trained, features)
            used = [True] * count
            if left_out:
                used = _used(loss_of, trained, self._parts(features))
        norms = jnp.stack([jnp.linalg.norm(jnp.ravel(g)) for g in gradients])
        if self.clip_norm is not None:
            gradients = _clipped(gradients, norms, self.clip_norm)
        state = self._applied(state, constants, gradients, used)
        return state, loss, norms

    def _loss(self, features: dict[str, Tensor], number: Tensor) -> Tensor:
        """Returns the loss of micro-batch `number`.

        Summed over parts, it is the mean loss plus the penalty of the method
        and the regularizers of weights.
        """
        # Keras's seeds are unsigned with JAX. They wrap around at 2**32.
        step: Any = self.optimizer.iterations
        seed = stateless_seeds.pass_seed(
            keras.ops.convert_to_tensor(self.seed, "uint32"),
            number.astype("uint32"),
            step.value.astype("uint32"),
        )
        outputs = self.model(inputs_of(features), training=True, seed=seed)
        losses = self.model.head.loss(features["targets"], outputs)
        penalty = self.model.regularization() / self.parts
        return jnp.sum(losses * features["weights"]) + penalty

    def _parts(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """Reshapes features `(rows, ...)` to `(micro-batches, rows, ...)`."""
        return {
            name: value.reshape(self.parts, -1, *value.shape[1:])
            for name, value in features.items()
        }

    def _gradients(
        self, loss_of: Any, trained: list[Tensor], features: dict[str, Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Returns the loss and the gradients, summed over micro-batches."""
        gradients_of = jax.value_and_grad(loss_of)
        if self.parts == 1:
            return gradients_of(trained, features, jnp.int32(0))

        def add(total: Any, part: Any) -> tuple[Any, None]:
            found = gradients_of(trained, *part)
            return jax.tree.map(jnp.add, total, found), None

        zeros = jnp.float32(0), [jnp.zeros_like(value) for value in trained]
        numbers = jnp.arange(self.parts, dtype="int32")
        total, _ = jax.lax.scan(add, zeros, (self._parts(features), numbers))
        return total

    def _applied(
        self,
        state: list[Tensor],
        constants: list[Tensor],
        gradients: list[Tensor],
        used: list[bool],
    ) -> list[Tensor]:
        """Returns the state after the optimizer has applied the gradients."""
        mapping = [
            *zip(self.state, state, strict=True),
            *zip(self.constants, constants, strict=True),
        ]
        with keras.StatelessScope(state_mapping=mapping) as scope:
            self.optimizer.apply_used(gradients, self.variables, used)
        return [scope.get_current_value(variable) for variable in self.state]


def inputs_of(features: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns the features of a batch that a model takes as inputs."""
    return {k: v for k, v in features.items() if k not in _NOT_INPUTS}


def shapes_of(features: dict[str, Tensor]) -> tuple[str, ...]:
    """Returns the name and the shape of each feature, as strings."""
    return tuple(f"{k} {v.shape}" for k, v in sorted(features.items()))


def _clipped(
    gradients: list[Tensor], norms: Tensor, limit: float
) -> list[Tensor]:
    """Scales gradients so that their global norm is at most `limit`.

    Args:
        gradients: List of tensors.
        norms: The norm of each gradient.
        limit: Largest global norm.
    """
    norm: Any = jnp.linalg.norm(norms)
    # As in `tf.clip_by_global_norm`.
    scale = limit * jnp.minimum(1 / norm, 1 / limit)
    return [gradient * scale for gradient in gradients]


def _used(
    loss_of: Any, trained: list[Tensor], parts: dict[str, Tensor]
) -> list[bool]:
    """Returns which of the trained values a loss depends on.

    Args:
        loss_of: Function of the values, of a micro-batch, and of its number.
        trained: List of values.
        parts: Features of all micro-batches.
    """
    part = {name: value[0] for name, value in parts.items()}
    jaxpr = jax.make_jaxpr(loss_of)(trained, part, jnp.int32(0)).jaxpr
    _, used = partial_eval.dce_jaxpr(jaxpr, [True])
    return list(used[: len(trained)])
