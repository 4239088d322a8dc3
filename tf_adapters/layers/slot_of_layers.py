"""Base classes of slots that contain layers."""

from collections.abc import Sequence
import typing
from typing import Any

import keras

from tf_adapters.layers.slot import Slot


class SlotOfLayers(Slot):
    """A slot that builds its layers with the slot's own input shape."""

    def build(self, input_shape: Sequence[Any] | None = None) -> None:
        for layer in self._flatten_layers(include_self=False, recursive=False):
            # Blocks may share a layer.
            if not layer.built:
                layer.build(input_shape)


class SlotGivenLayers(SlotOfLayers):
    """A slot whose constructor takes layers.

    Keras saves plain arguments in a layer's configuration, but not layers.
    `arguments` lists the names of all constructor arguments. The slot must have
    an attribute for each of them.
    """

    arguments = ()

    def get_config(self) -> dict[str, Any]:
        values = {
            name: keras.saving.serialize_keras_object(getattr(self, name))
            for name in self.arguments
        }
        return {**super().get_config(), **values}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> typing.Self:
        values = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in cls.arguments
        }
        return cls(**{**config, **values})
