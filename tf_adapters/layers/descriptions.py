"""Describes what a layer computes, apart from the values of its weights.

Two layers with equal descriptions compute the same function of their inputs and
weights. The opposite is not true: what cannot be compared counts as different.
"""

from collections.abc import Mapping
import functools
from typing import Any

import keras
import numpy as np

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def attributes(layer: keras.layers.Layer) -> dict[str, Any]:
    """Returns the attributes that a layer's own classes add to Keras's layer.

    A dict from name to value.
    """
    known = _attributes_of_keras()
    return {k: value for k, value in vars(layer).items() if k not in known}


@functools.cache
def _attributes_of_keras() -> frozenset[str]:
    layer = keras.layers.Layer()
    # TensorFlow adds attributes to a layer that holds another one.
    layer.held = keras.layers.Layer()
    return frozenset(vars(layer)) - {"held"}


def described(value: Any, weights: Mapping[int, int]) -> Any:
    """Returns a description of `value` that can be compared with others.

    Args:
        value: A layer, or a list, tuple, set or dict of what it holds.
        weights: Dict from the id of each of the layer's weights to the weight's
            number. Weights with equal numbers, shapes and types are equal.
            Other variables, functions and objects are equal only to themselves.
    """
    return _Describer(weights).describe(value)


class _Describer:
    def __init__(self, weights: Mapping[int, int]) -> None:
        self.weights = weights
        # Layers may hold each other, so each is described only once.
        self.layers: dict[int, int] = {}

    def describe(self, value: Any) -> Any:
        if isinstance(value, _PLAIN):
            return type(value), value
        if isinstance(value, keras.Variable):
            number = self.weights.get(id(value))
            own = ("id", id(value)) if number is None else ("weight", number)
            return own, tuple(value.shape), str(value.dtype)
        if isinstance(value, keras.layers.Layer):
            return self._of_layer(value)
        if isinstance(value, keras.initializers.Initializer):
            # Weights that exist are not initialized again.
            return "initializer"
        if isinstance(value, np.ndarray):
            return str(value.dtype), value.shape, value.tobytes()
        if isinstance(value, Mapping):
            return {name: self.describe(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.describe(item) for item in value]
        if isinstance(value, set | frozenset):
            return {self.describe(item) for item in value}
        return "id", id(value)

    def _of_layer(self, layer: keras.layers.Layer) -> Any:
        if id(layer) in self.layers:
            return "layer", self.layers[id(layer)]
        self.layers[id(layer)] = len(self.layers)
        return (
            type(layer),
            layer.dtype_policy.name,
            layer.autocast,
            self.describe(attributes(layer)),
        )
