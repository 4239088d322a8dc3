"""A small network on word embeddings: a plain Keras model, no encoder."""

import keras
from keras import layers
from keras import ops

from tf_adapters.common.checks import check_known

EMBEDDINGS = ("trained", "encoder_frozen", "encoder_tuned")
POOLINGS = ("mean", "max")
OPTIMIZERS = {
    "adam": keras.optimizers.Adam,
    "rmsprop": keras.optimizers.RMSprop,
    "sgd": keras.optimizers.SGD,
}
# What a trial of the search says; see `make_network`.
SETTINGS = (
    *("embeddings", "embedding_width", "convolution_layers", "filters"),
    *("kernel_size", "pooling", "dense_layers", "units", "dropout", "l2"),
    *("optimizer", "learning_rate"),
)


def make_network(settings, table, pad_id, num_outputs):
    """Returns a Keras model from token ids `(batch, tokens)` to outputs.

    Args:
        settings: Dict with each of `SETTINGS`: `embeddings`, one of
            `EMBEDDINGS`, those of `embedding_width` start at random;
            `convolution_layers` of `filters` and `kernel_size`; `pooling`, one
            of `POOLINGS`; `dense_layers` of `units`; `dropout` before each
            dense layer, the last too; `l2` on all kernels. The others are
            those of `make_optimizer`.
        table: Array `(vocabulary, width)`, the encoder's token embeddings.
        pad_id: Id of the token that pads.
        num_outputs: Classes, or 1 for numbers.
    """
    check_known("embeddings", settings["embeddings"], EMBEDDINGS)
    check_known("pooling", settings["pooling"], POOLINGS)
    penalty = keras.regularizers.L2(settings["l2"])
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    is_token = ops.expand_dims(ops.not_equal(ids, pad_id), -1)
    is_token = ops.cast(is_token, "float32")
    x = _embedding(settings, table)(ids) * is_token
    for _ in range(settings["convolution_layers"]):
        x = layers.Conv1D(
            settings["filters"],
            settings["kernel_size"],
            padding="same",
            activation="relu",
            kernel_regularizer=penalty,
        )(x)
        # What stands behind the text must not reach into it from there.
        x = x * is_token
    x = _pooled(x, is_token, settings["pooling"])
    for _ in range(settings["dense_layers"]):
        x = layers.Dropout(settings["dropout"])(x)
        x = layers.Dense(
            settings["units"], activation="relu", kernel_regularizer=penalty
        )(x)
    x = layers.Dropout(settings["dropout"])(x)
    outputs = layers.Dense(num_outputs, kernel_regularizer=penalty)(x)
    return keras.Model(ids, outputs, name="no_bert")


def _embedding(settings, table):
    if settings["embeddings"] == "trained":
        return layers.Embedding(len(table), settings["embedding_width"])
    return layers.Embedding(
        *table.shape,
        embeddings_initializer=keras.initializers.Constant(0.0),
        weights=[table],
        trainable=settings["embeddings"] == "encoder_tuned",
    )


def _pooled(x, is_token, pooling):
    if pooling == "mean":
        return ops.sum(x, axis=1) / ops.maximum(ops.sum(is_token, axis=1), 1.0)
    # What pads is below any token.
    return ops.max(x - 1e9 * (1.0 - is_token), axis=1)


def make_optimizer(settings):
    """Returns the optimiser that `optimizer` and `learning_rate` say."""
    check_known("optimizer", settings["optimizer"], OPTIMIZERS)
    return OPTIMIZERS[settings["optimizer"]](settings["learning_rate"])
