"""Strategies by name."""

import functools

import tensorflow as tf


# A process keeps one strategy of a kind: a second MirroredStrategy counts its
# collective operations from the start again and meets those of the first.
@functools.cache
def make_strategy(name):
    """Returns a `tf.distribute.Strategy`.

    Args:
        name: `"one_device"`: the first GPU, or the CPU. `"mirrored"`: all local
            GPUs, or all logical CPUs.
    """
    gpus = tf.config.list_logical_devices("GPU")
    devices = gpus or tf.config.list_logical_devices("CPU")
    if name == "one_device":
        return tf.distribute.OneDeviceStrategy(devices[0].name)
    return tf.distribute.MirroredStrategy([device.name for device in devices])
