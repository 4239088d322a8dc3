"""The devices on which JAX trains a model."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import os
from typing import TYPE_CHECKING
from typing import Any

import keras
import numpy as np

from tf_adapters.common.errors import ConfigError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tf_adapters.common.types import Tensor
    from tf_adapters.config.settings import Config


class JaxDevices:
    """One or several JAX devices that compute a batch together.

    With several devices, each holds all variables and computes its share of a
    batch's rows (`keras.distribution.DataParallel`). For runs with JAX, this
    class has the place of a `tf.distribute.Strategy`.

    Args:
        names: Names of the devices, such as `["gpu:0", "gpu:1"]`.

    Attributes:
        num_replicas_in_sync: Number of devices.
    """

    def __init__(self, names: list[str]) -> None:
        self.num_replicas_in_sync = len(names)
        self._distribution: Any = None
        if len(names) > 1:
            self._distribution = keras.distribution.DataParallel(devices=names)

    def scope(self) -> AbstractContextManager[Any]:
        """Context manager in which to create variables.

        Each device has a copy of the variables.
        """
        if self._distribution is None:
            return contextlib.nullcontext()
        return self._distribution.scope()

    def rows(self, rows: int, parts: int = 1) -> int:
        """Rounds a number of rows up, so that devices get equal shares.

        Args:
            rows: Number of rows of a batch.
            parts: Number of micro-batches into which each share is divided.
        """
        share = self.num_replicas_in_sync * parts
        return share * math.ceil(rows / share)

    def put(self, features: dict[str, np.ndarray]) -> dict[str, Tensor]:
        """Copies the features of a batch to the devices, split by rows."""
        if self._distribution is None:
            return {
                k: keras.ops.convert_to_tensor(v) for k, v in features.items()
            }
        return {
            name: keras.distribution.distribute_tensor(
                keras.ops.convert_to_tensor(value),
                self._distribution.get_data_layout(value.shape),
            )
            for name, value in features.items()
        }

    @property
    def replicated(self) -> Any:
        """The `jax.sharding.Sharding` of values that each device holds.

        `None` if there is a single device.
        """
        if self._distribution is None:
            return None
        mesh: Any = self._distribution.device_mesh
        layout: Any = keras.distribution.TensorLayout([], mesh)
        return layout.backend_layout


def make_devices(config: Config) -> JaxDevices:
    """Returns the `JaxDevices` on which a run computes.

    The strategy `one_device` stands for the first device, and `mirrored` for
    all devices of this machine: GPUs, the cores of a TPU, or else CPUs.

    Args:
        config: `Config` of the run.

    Raises:
        ConfigError: If a setting of the run needs TensorFlow, or a batch has
            fewer rows than there are devices.
    """
    _hide_gpus_from_tensorflow()
    if config.train.deterministic:
        _make_deterministic()
    _check_settings(config)
    names = keras.distribution.list_devices()
    if config.distribution_strategy == "one_device":
        names = names[:1]
    size = min(config.train.batch_size, config.train.eval_batch_size)
    if size < len(names):
        raise ConfigError(
            f"A batch of {size} rows cannot be split over {len(names)} "
            "devices. Give a --batch_size and a train.eval_batch_size of at "
            f"least {len(names)}, or --distribution_strategy=one_device."
        )
    return JaxDevices(names)


@functools.cache
def _hide_gpus_from_tensorflow() -> None:
    """Leaves the memory of all GPUs to JAX. TensorFlow only reads the data.

    Raises:
        ConfigError: If TensorFlow has taken the GPUs already.
    """
    if importlib.util.find_spec("tensorflow") is None:
        return
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        return
    try:
        tf.config.set_visible_devices([], "GPU")
    except RuntimeError as error:
        raise ConfigError(
            "TensorFlow computes on this process's GPUs already, so JAX cannot "
            "have them. Start a new process for JAX."
        ) from error


@functools.cache
def _make_deterministic() -> None:
    """Makes JAX compute bit-identical results on GPUs.

    JAX reads the flag when it first lists its devices.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_deterministic_ops=true"


def _check_settings(config: Config) -> None:
    """Raises a `ConfigError` if a setting has no equivalent with JAX."""
    strategy = config.distribution_strategy
    if strategy not in ("one_device", "mirrored"):
        raise ConfigError(
            f"--distribution_strategy={strategy} needs TensorFlow. With "
            "--backend=jax, `one_device` is the first device and `mirrored` "
            "is all devices of this machine, the cores of a TPU included."
        )
    if config.method.own_training() is not None:
        raise ConfigError(
            "The search for a network without an encoder needs TensorFlow: "
            "leave --backend out."
        )
    if config.train.jit_compile is False:
        raise ConfigError(
            "JAX runs compiled programs only. Received: `train.jit_compile` "
            "false. Leave it out."
        )
    if config.train.precision == "mixed_float16":
        raise ConfigError(
            "The loss scale that mixed_float16 needs is part of the TensorFlow "
            "trainer. With --backend=jax, give --precision=mixed_bfloat16, or "
            "leave --backend out."
        )
