"""Whether a `tf.distribute` strategy computes, and which replica of it."""

import keras


def replica_number():
    """Returns the replica's number under a strategy, 0 elsewhere.

    Other backends than TensorFlow compute a batch as a whole wherever its parts
    are.

    Returns:
        Integer or scalar integer tensor.
    """
    if keras.backend.backend() != "tensorflow":
        return 0
    # Models work where TensorFlow is not installed.
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    return 0 if context is None else context.replica_id_in_sync_group


def is_on_one_device(model):
    """Returns whether Keras trains a model in TensorFlow without a strategy."""
    if keras.backend.backend() != "tensorflow":
        return False
    import tensorflow as tf

    with model.distribute_strategy.scope():
        return not tf.distribute.has_strategy()


def sum_over_replicas(value):
    """Returns the sum of a tensor over all replicas that compute a step.

    Args:
        value: Tensor. In `fit`, the optimizer has those of its own replica.
    """
    if keras.backend.backend() != "tensorflow":
        return value
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return value
    return context.all_reduce(tf.distribute.ReduceOp.SUM, value)
