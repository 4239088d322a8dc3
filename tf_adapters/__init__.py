"""Adapters for Keras: one frozen encoder, many tasks."""

from tf_adapters import heads
from tf_adapters import layers
from tf_adapters import methods
from tf_adapters import tasks
from tf_adapters.artifacts import load_adapter
from tf_adapters.artifacts import save_adapter
from tf_adapters.data.packing import TextPacker
from tf_adapters.encoders import load_encoder
from tf_adapters.model import AdapterModel
from tf_adapters.model import adapt
from tf_adapters.model import trained_table

__version__ = "0.1.0"

__all__ = [
    "AdapterModel",
    "TextPacker",
    "adapt",
    "heads",
    "layers",
    "load_adapter",
    "load_encoder",
    "methods",
    "save_adapter",
    "tasks",
    "trained_table",
]
