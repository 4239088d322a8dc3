"""A small network on word embeddings, and the search space of its settings."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import layers
from keras import ops

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown

if TYPE_CHECKING:
    import numpy as np


EMBEDDINGS = ("trained", "encoder_frozen", "encoder_tuned")
POOLINGS = ("mean", "max")
OPTIMIZERS = {
    "adam": keras.optimizers.Adam,
    "rmsprop": keras.optimizers.RMSprop,
    "sgd": keras.optimizers.SGD,
}
# Settings of a trial; see `make_network`.
SETTINGS = (
    *("embeddings", "embedding_width", "convolution_layers", "filters"),
    *("kernel_size", "pooling", "dense_layers", "units", "dropout", "l2"),
    *("optimizer", "learning_rate"),
)


def make_network(
    settings: dict[str, Any], table: np.ndarray, pad_id: Any, num_outputs: int
) -> Any:
    """Makes a Keras model that takes token ids `(batch, tokens)`.

    Args:
        settings: Dict with all keys of `SETTINGS`. `embeddings` is one of
            `EMBEDDINGS`; `embedding_width` is used only for `"trained"`.
            `convolution_layers` is the number of layers with `filters` and
            `kernel_size`, and `dense_layers` the number of layers with `units`.
            `pooling` is one of `POOLINGS`. `dropout` is applied before each
            dense layer, including the output layer, and `l2` to all kernels.
            `optimizer_of` uses `optimizer` and `learning_rate`.
        table: Array `(vocabulary, width)`, the encoder's token embeddings.
        pad_id: Id of the padding token.
        num_outputs: Number of classes, or 1 for regression.
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
        # Padding must not affect the text before it.
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


def _embedding(settings: Any, table: Any) -> Any:
    if settings["embeddings"] == "trained":
        return layers.Embedding(len(table), settings["embedding_width"])
    zeros: Any = keras.initializers.Constant(0.0)
    return layers.Embedding(
        *table.shape,
        embeddings_initializer=zeros,
        weights=[table],
        trainable=settings["embeddings"] == "encoder_tuned",
    )


def _pooled(x: Any, is_token: Any, pooling: Any) -> Any:
    if pooling == "mean":
        return ops.sum(x, axis=1) / ops.maximum(ops.sum(is_token, axis=1), 1.0)
    # Padding gets values below those of all tokens.
    return ops.max(x - 1e9 * (1.0 - is_token), axis=1)


def optimizer_of(settings: Any) -> Any:
    """Returns the optimizer with the name and learning rate in the settings."""
    check_known("optimizer", settings["optimizer"], OPTIMIZERS)
    return OPTIMIZERS[settings["optimizer"]](settings["learning_rate"])


def check_space(space: dict[str, Any]) -> None:
    """Raises `ConfigError` if a search space is incomplete or malformed.

    Args:
        space: Dict from each of `SETTINGS` to a list of values, or to a range,
            which is a dict with `low`, `high` and optionally `log`.
    """
    differ = set(space) ^ set(SETTINGS)
    if differ:
        raise ConfigError(
            f"`search.space` must have {', '.join(SETTINGS)}, as "
            "official_configs/methods/no_bert.yaml has them. Missing or "
            f"unknown: {', '.join(sorted(differ))}"
        )
    for name, values in space.items():
        if not (_is_choice(values) or _is_range(values)):
            raise ConfigError(
                f"`search.space.{name}` must be a list of values ([64] for one "
                "alone), or a range, {low: 0.1, high: 0.5}, log: true if it "
                f"is even in the logarithm. Received: {shown(values)}"
            )


def _is_choice(values: Any) -> bool:
    return isinstance(values, list | tuple) and len(values) > 0


def _is_range(values: Any) -> Any:
    if not isinstance(values, dict) or values.keys() - {"low", "high", "log"}:
        return False
    low: Any = values.get("low")
    high: Any = values.get("high")
    if not all(isinstance(end, numbers.Real) for end in (low, high)):
        return False
    return low <= high and (low > 0 or not values.get("log"))


def suggest(trial: Any, space: Any) -> dict[Any, Any]:
    """Draws settings from a search space, and returns them as a dict.

    `trial` is an Optuna trial. See `check_space` for `space`.
    """
    return {
        name: trial.suggest_categorical(name, values)
        if _is_choice(values)
        else trial.suggest_float(name, **values)
        for name, values in space.items()
    }
