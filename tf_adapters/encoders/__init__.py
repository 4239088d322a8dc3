"""Pretrained encoders and their tokenizers, one file a family.

`register` makes a family of your own known.
"""

from tf_adapters.encoders.architecture import Architecture
from tf_adapters.encoders.block_layers import BlockLayers
from tf_adapters.encoders.keras_hub_families import register

__all__ = ["Architecture", "BlockLayers", "register"]
