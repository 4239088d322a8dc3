"""Warns about Keras losses that are wrong for a model that returns logits."""

import inspect
from typing import Any
import warnings

import keras

from tf_adapters.heads.head import Head
from tf_adapters.heads.registry import name_of

_WITH_LOGITS = (
    keras.losses.BinaryCrossentropy,
    keras.losses.BinaryFocalCrossentropy,
    keras.losses.CategoricalCrossentropy,
    keras.losses.CategoricalFocalCrossentropy,
    keras.losses.SparseCategoricalCrossentropy,
)


def warn_of_probabilities(head: Head | None, loss: Any) -> None:
    """Warns if a head returns logits but a loss expects probabilities.

    Args:
        head: `Head`, or `None`.
        loss: Argument of `compile`: name, function, `keras.losses.Loss`, a list
            or dict of these, or `None`.
    """
    if head is None or not head.gives_logits:
        return
    losses = map(keras.losses.get, keras.tree.flatten(loss))
    if any(map(_expects_probabilities, losses)):
        warnings.warn(
            f"The head `{name_of(head)}` gives logits, and this loss expects "
            "probabilities, so that training goes wrong. Give it "
            "`from_logits=True`, as in `keras.losses.BinaryCrossentropy("
            f"from_logits=True)`. Received: loss={loss!r:.200}",
            stacklevel=3,
        )


def _expects_probabilities(loss: Any) -> bool:
    if isinstance(loss, _WITH_LOGITS):
        return not loss.from_logits
    if loss is None or isinstance(loss, keras.losses.Loss):
        return False
    parameter = inspect.signature(loss).parameters.get("from_logits")
    return parameter is not None and parameter.default is False
