"""Creates distribution strategies by name."""

from collections.abc import Callable
import functools
import itertools
import json
import os
import queue
import socket
import threading
from typing import Any
import urllib.parse

import tensorflow as tf

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown

# Time in which the TPU's name must be found and all its hosts must answer.
_SECONDS_TO_ANSWER = 60.0


def make_strategy(name: str, tpu: str = "") -> tf.distribute.Strategy:
    """Returns the `tf.distribute.Strategy` with the given name.

    If called again with the same arguments, the function returns the same
    object. If the strategy uses several machines, call this function before
    TensorFlow runs any operation.

    Args:
        name: Name that determines the devices. `"one_device"`: the first GPU,
            or the CPU if there is no GPU. `"mirrored"`: all local GPUs, or all
            logical CPUs if there is no GPU. `"multi_worker_mirrored"`: the
            devices of all workers in the environment variable `TF_CONFIG`.
            `"tpu"`: all cores of a TPU.
        tpu: Name or address of the TPU, or `"local"` on the TPU's own machine.
            Only used for `"tpu"`.

    Raises:
        ConfigError: If the cluster or the TPU cannot be found.
    """
    return _kept(name, tpu)


# Cached, because a second MirroredStrategy in a process would give its
# collective operations the same numbers as the first one.
@functools.cache
def _kept(name: str, tpu: str) -> tf.distribute.Strategy:
    return _MAKERS[name](tpu)


def _one_device(tpu: str) -> tf.distribute.Strategy:
    return tf.distribute.OneDeviceStrategy(_devices()[0].name)


def _mirrored(tpu: str) -> tf.distribute.Strategy:
    return tf.distribute.MirroredStrategy([one.name for one in _devices()])


def _devices() -> list[tf.config.LogicalDevice]:
    gpus = tf.config.list_logical_devices("GPU")
    return gpus or tf.config.list_logical_devices("CPU")


def _multi_worker_mirrored(tpu: str) -> tf.distribute.Strategy:
    try:
        cluster = json.loads(os.environ.get("TF_CONFIG") or "{}")["cluster"]
        found = bool(cluster.get("worker") or cluster.get("chief"))
    except (ValueError, KeyError, AttributeError, TypeError):
        found = False
    if not found:
        raise ConfigError(_bad_tf_config())
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except (TypeError, ValueError, tf.errors.OpError) as error:
        # For example, the task is missing or its index is too large.
        raise ConfigError(
            f"{_bad_tf_config()} {str(error).splitlines()[0]}"
        ) from error


def _bad_tf_config() -> str:
    return (
        "--distribution_strategy=multi_worker_mirrored needs the environment "
        'variable TF_CONFIG on each worker, for example {"cluster": '
        '{"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", '
        '"index": 0}}. Received: '
        f"{shown(os.environ.get('TF_CONFIG'))}"
    )


def is_tpu(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether a strategy computes on a TPU."""
    return isinstance(strategy, tf.distribute.TPUStrategy)


# Errors that TensorFlow raises if it does not find a TPU.
_UNREACHABLE = (
    *(ValueError, RuntimeError, ImportError, OSError),
    tf.errors.OpError,
)


def _tpu(tpu: str) -> tf.distribute.Strategy:
    try:
        resolver = _within_seconds(
            _SECONDS_TO_ANSWER, functools.partial(_resolve, tpu)
        )
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except _UNREACHABLE as error:
        raise ConfigError(
            f"There is no TPU at --tpu={tpu}: {str(error).splitlines()[0]} "
            "Give a TPU's name or address, or `local` on its own machine."
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def _resolve(tpu: str) -> Any:
    """Returns the resolver of a TPU, all of whose hosts accept connections.

    TensorFlow would wait forever for a host that does not answer.
    """
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=tpu)
    jobs = resolver.cluster_spec().as_dict()
    for address in itertools.chain.from_iterable(jobs.values()):
        url = urllib.parse.urlsplit(f"grpc://{address}")
        with socket.create_connection((url.hostname, url.port), timeout=10):
            pass
    return resolver


def _within_seconds(seconds: float, function: Callable[[], Any]) -> Any:
    """Returns the value of `function()`, which another thread computes.

    Raises:
        TimeoutError: If the function has not returned in time. Its thread then
            does not keep the process from ending.
    """
    values = queue.SimpleQueue()

    def call() -> None:
        try:
            values.put((function(), None))
        except Exception as error:
            values.put((None, error))

    threading.Thread(target=call, daemon=True).start()
    try:
        value, error = values.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(
            f"it did not answer within {seconds:g} seconds."
        ) from None
    if error is not None:
        raise error
    return value


_MAKERS = {
    "one_device": _one_device,
    "mirrored": _mirrored,
    "multi_worker_mirrored": _multi_worker_mirrored,
    "tpu": _tpu,
}
