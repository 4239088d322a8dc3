"""Decides which variables of a model are trainable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tf_adapters.models import variable_groups

if TYPE_CHECKING:
    import keras
    import keras_hub

    from tf_adapters.models.assembled_model import AssembledModel


class Freezing:
    """Records which variables of a model are trained, and which are frozen.

    Keras's flag `trainable` is not enough: models share the encoder's
    variables, whose flags are those of the model that was made last.

    Args:
        model: `AdapterModel` whose slots, head and reparameterization exist.
    """

    def __init__(self, model: AssembledModel) -> None:
        added = variable_groups.trained_additions(model)
        self._added = _ids(added)
        self._of_encoder = _ids(model.declared_encoder_variables())

    def is_added(self, variable: keras.Variable) -> bool:
        """Returns whether a variable trains and is not part of the backbone."""
        return id(variable) in self._added

    def trained(
        self, model: AssembledModel, variables: Iterable[keras.Variable]
    ) -> list[keras.Variable]:
        """Returns the subset of `variables` that Keras's `fit` trains."""
        ids = self._ids_trained(model)
        return [v for v in variables if id(v) in ids]

    def frozen(
        self, model: AssembledModel, variables: Iterable[keras.Variable]
    ) -> list[keras.Variable]:
        """Returns the subset of `variables` that `fit` does not train."""
        ids = self._ids_trained(model)
        return [v for v in variables if id(v) not in ids]

    def _ids_trained(self, model: AssembledModel) -> frozenset[int]:
        if not model.trainable:
            return frozenset()
        # In the encoder, the flags of layers count, not those of variables.
        frozen = _ids(_in_frozen_layers(model.encoder))
        added = (v for v in model.weights if self.is_added(v) and v.trainable)
        return (self._of_encoder - frozen) | _ids(added)


def freeze_all_but_declared(model: AssembledModel) -> None:
    """Makes only the variables that method and head declare trainable."""
    for _, trains, variables in model.variable_groups():
        for variable in variables:
            variable.trainable = trains


def unfreeze_layers(backbone: keras_hub.models.Backbone) -> None:
    """Makes all layers of a backbone trainable.

    If a layer is found to be frozen after this call, the user has frozen it.
    """
    # One by one: with TensorFlow, Keras stops at an already trainable layer.
    for layer in backbone._flatten_layers():
        layer.trainable = True


def _in_frozen_layers(layer: keras.layers.Layer) -> list[keras.Variable]:
    """Returns the variables of all frozen layers within a layer."""
    return [
        variable
        for inner in layer._flatten_layers()
        if not inner.trainable
        for variable in inner.weights
    ]


def _ids(variables: Iterable[keras.Variable]) -> frozenset[int]:
    return frozenset(id(variable) for variable in variables)
