"""Adapters for Keras: one frozen encoder, many tasks."""

import importlib

__version__ = "0.1.0"

# What `import tf_adapters` offers, and where it is. Loaded when it is first
# used: KerasHub alone takes seconds, and `train.py --help` needs none of it.
_MODULES = ("heads", "layers", "methods", "tasks")
_MEMBERS = {
    "AdapterModel": "tf_adapters.model",
    "TextPacker": "tf_adapters.data.packing",
    "adapt": "tf_adapters.model",
    "fuse": "tf_adapters.fusing",
    "load_adapter": "tf_adapters.artifacts",
    "load_bank": "tf_adapters.bank",
    "load_encoder": "tf_adapters.encoders",
    "save_adapter": "tf_adapters.artifacts",
    "trained_table": "tf_adapters.trained_weights",
}

__all__ = ["__version__", *_MODULES, *_MEMBERS]


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"tf_adapters.{name}")
    if name in _MEMBERS:
        return getattr(importlib.import_module(_MEMBERS[name]), name)
    raise AttributeError(f"module `tf_adapters` has no attribute `{name}`")


def __dir__():
    return __all__
