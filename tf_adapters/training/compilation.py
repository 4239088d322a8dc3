"""Compiles the functions of a step with XLA, and counts the programs."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tf_adapters.common.errors import ConfigError
from tf_adapters.training import distribution


class Compiler:
    """Compiles functions of tensors with XLA, one program per shape.

    Args:
        setting: The value of `train.jit_compile`. `None` compiles if there is a
            GPU.
        strategy: `tf.distribute.Strategy`. On a TPU, the strategy itself
            compiles the steps, so the compiler leaves them unchanged.

    Attributes:
        is_on: Whether functions are compiled.
        programs: Set with an entry for each compiled program: the name of the
            function, and the shapes of its arguments.
    """

    def __init__(
        self, setting: bool | None, strategy: tf.distribute.Strategy
    ) -> None:
        self.is_on = _is_on(setting, strategy)
        self._must = bool(setting)
        self.programs: set[tuple[Any, ...]] = set()

    def compiled(
        self, name: str, function: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Returns a function that XLA compiles when it is first called.

        If the shape of an argument is unknown, each batch could need a program
        of its own. The function is then called without XLA, or refused if
        `train.jit_compile` is true.

        Args:
            name: Name of the function in `programs`.
            function: Function of tensors, or of structures of tensors. Its
                computation may depend on nothing else that changes.
        """
        if not self.is_on:
            return function
        program = tf.function(function, autograph=False, jit_compile=True)

        def call(*arguments: Any) -> Any:
            shapes = [one.shape for one in tf.nest.flatten(arguments)]
            if all(shape.is_fully_defined() for shape in shapes):
                self.programs.add((name, *map(str, shapes)))
                return program(*arguments)
            if self._must:
                raise ConfigError(_UNKNOWN_SHAPES)
            return function(*arguments)

        return call


_UNKNOWN_SHAPES = (
    "`train.jit_compile` is true, so XLA compiles a program for each shape of "
    "a batch. These batches have no fixed shape. Give "
    "--params_override=data.batching=fixed, with data.length_buckets=[32,64] "
    "if most texts are short, or train.jit_compile=false."
)


def _is_on(setting: bool | None, strategy: tf.distribute.Strategy) -> bool:
    if distribution.is_tpu(strategy):
        return False
    if setting is None:
        return bool(tf.config.list_physical_devices("GPU"))
    return setting
