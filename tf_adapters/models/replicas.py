"""Functions for models under a `tf.distribute` strategy."""

import keras

from tf_adapters.common.types import Tensor


def replica_number() -> int | Tensor:
    """Returns the current replica's number under a `tf.distribute` strategy.

    Returns 0 without a strategy, and on backends other than TensorFlow. These
    compute a batch as a whole, even if it is distributed over devices.

    Returns:
        Integer or scalar integer tensor.
    """
    if keras.backend.backend() != "tensorflow":
        return 0
    # Imported here, because models also work without TensorFlow.
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    return 0 if context is None else context.replica_id_in_sync_group


def is_on_one_device(model: keras.Model) -> bool:
    """Returns whether Keras trains a model in TensorFlow without a strategy."""
    if keras.backend.backend() != "tensorflow":
        return False
    import tensorflow as tf

    with model.distribute_strategy.scope():
        return not tf.distribute.has_strategy()


def sum_over_replicas(value: Tensor) -> Tensor:
    """Returns the sum of a tensor over all replicas of a training step.

    Args:
        value: The tensor of the current replica. It is returned unchanged if
            there is only one replica.
    """
    if keras.backend.backend() != "tensorflow":
        return value
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return value
    return context.all_reduce(tf.distribute.ReduceOp.SUM, value)
