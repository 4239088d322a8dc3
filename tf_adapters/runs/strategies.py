"""Chooses the distribution strategy and the trainer of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import keras

from tf_adapters.common.errors import ConfigError
from tf_adapters.training import distribution
from tf_adapters.training import trainer

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config


def strategy_of(config: Config) -> Any:
    """Returns the `tf.distribute.Strategy` that a `Config` names.

    With Keras's JAX backend, returns `JaxDevices`.

    Raises:
        ConfigError: If the strategy is not available on this machine, or
            requires other settings.
    """
    if keras.backend.backend() == "jax":
        from tf_adapters.training import jax_devices

        return jax_devices.make_devices(config)
    if config.distribution_strategy == "tpu" and not config.data.fixed_lengths:
        raise ConfigError(
            "A TPU compiles a program for each shape of a batch, and "
            f"`data.batching` is `{config.data.batching}`: every length is "
            "another shape. Add --params_override=data.batching=fixed, and "
            "data.length_buckets=[32,64] where most texts are short."
        )
    precision = config.train.precision
    if config.distribution_strategy == "tpu" and precision == "mixed_float16":
        raise ConfigError(
            "A TPU computes in bfloat16, not in float16. Received: "
            f"`train.precision` {precision}. Give --precision=mixed_bfloat16."
        )
    if (
        config.distribution_strategy == "tpu"
        and config.train.jit_compile is False
    ):
        raise ConfigError(
            "A TPU runs compiled programs only. Received: `train.jit_compile` "
            "false. Leave it out."
        )
    return distribution.make_strategy(config.distribution_strategy, config.tpu)


def trainer_class() -> Any:
    """Returns `Trainer`, or `JaxTrainer` with Keras's JAX backend."""
    if keras.backend.backend() == "jax":
        from tf_adapters.training import jax_trainer

        return jax_trainer.JaxTrainer
    return trainer.Trainer
