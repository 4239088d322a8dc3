"""Keras layers with the computations of the methods.

Keras derives a layer's configuration from the arguments of its constructor.
Slots whose constructors take layers derive from `SlotGivenLayers` instead.
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
