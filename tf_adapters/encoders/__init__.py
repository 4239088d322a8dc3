"""Pretrained encoders and their tokenizers, one file per family.

`register` adds a family of your own.
"""

from tf_adapters.encoders.architecture import Architecture
from tf_adapters.encoders.block_layers import BlockLayers
from tf_adapters.encoders.keras_hub_families import register

__all__ = ["Architecture", "BlockLayers", "register"]
