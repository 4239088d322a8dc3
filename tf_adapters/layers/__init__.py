"""Keras layers with the computations of the methods.

A slot is a layer that a method attaches to an encoder. Keras derives a layer's
configuration from the arguments of its constructor, but only if they are plain
values. Slots whose constructors take layers are subclasses of
`SlotGivenLayers`.
"""

from tf_adapters.layers.adapter_bias import TokenWeight
from tf_adapters.layers.adapter_bias import Vector
from tf_adapters.layers.bottleneck import Bottleneck
from tf_adapters.layers.context import Context
from tf_adapters.layers.hard_concrete import HardConcreteGates
from tf_adapters.layers.slot import Slot

__all__ = [
    "Bottleneck",
    "Context",
    "HardConcreteGates",
    "Slot",
    "TokenWeight",
    "Vector",
]
