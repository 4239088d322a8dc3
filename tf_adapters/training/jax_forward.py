"""Compiled forward passes of JAX."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import jax
import keras

from tf_adapters.training import jax_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from tf_adapters.common.types import Tensor

    Function = Callable[[dict[str, Tensor]], Tensor]


class JaxForward:
    """Computes functions of a model's inputs, each compiled once per shape.

    Args:
        model: Keras model whose variables the functions use. Their values are
            arguments of the compiled functions, so they may change between two
            calls.
        programs: Set to which to add an entry for each compiled program.
    """

    def __init__(
        self, model: keras.Model, programs: set[tuple[Any, ...]]
    ) -> None:
        self._programs = programs
        self._variables = model.variables
        self._compiled: dict[Function, Any] = {}

    def compute(
        self, function: Function, features: dict[str, Tensor]
    ) -> Tensor:
        """Returns the outputs of a function for the inputs in `features`.

        Args:
            function: Function of a dict of inputs. Pass the same object each
                time, so that it is not compiled again.
            features: Features of a batch, from `JaxDevices.put`.
        """

        def outputs(values: list[Tensor], inputs: dict[str, Tensor]) -> Tensor:
            self._programs.add((function, *jax_step.shapes_of(inputs)))
            mapping = zip(self._variables, values, strict=True)
            with keras.StatelessScope(state_mapping=mapping):
                return function(inputs)

        if function not in self._compiled:
            self._compiled[function] = jax.jit(outputs)
        values = [variable.value for variable in self._variables]
        inputs = jax_step.inputs_of(features)
        return self._compiled[function](values, inputs)
