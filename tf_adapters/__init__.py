"""Adapters for Keras: one frozen encoder, many tasks."""

import importlib

from tf_adapters.common import checks
from tf_adapters.common import onednn

__version__ = "0.1.0"

# Before anything of ours imports TensorFlow.
onednn.switch_on()

# What `import tf_adapters` offers, and where it is. Loaded when it is first
# used: KerasHub alone takes seconds, and `tf-adapters --help` needs none of it.
_MODULES = ("encoders", "heads", "layers", "methods", "tasks")
_MEMBERS = {
    "AdapterModel": "tf_adapters.models.adapter_model",
    "Average": "tf_adapters.models.composition",
    "BatchSplit": "tf_adapters.models.composition",
    "Parallel": "tf_adapters.models.composition",
    "Stack": "tf_adapters.models.composition",
    "UserError": "tf_adapters.common.errors",
    "TextModel": "tf_adapters.text.text_model",
    "TextPacker": "tf_adapters.data.tokens.packing",
    "adapt": "tf_adapters.models.adapter_model",
    "compose": "tf_adapters.models.composed_model",
    "export_model": "tf_adapters.export.saved_model",
    "fuse": "tf_adapters.models.fusion_model",
    "load": "tf_adapters.text.loading",
    "load_adapter": "tf_adapters.models.saving",
    "load_bank": "tf_adapters.models.bank_model",
    "load_encoder": "tf_adapters.encoders.load",
    "merge_adapters": "tf_adapters.merging.merge",
    "save_adapter": "tf_adapters.models.saving",
    "search_weights": "tf_adapters.merging.merge",
    "swap_adapters": "tf_adapters.models.composed_model",
    "train": "tf_adapters.launch.table_run",
    "trained_table": "tf_adapters.models.variable_groups",
    "tune": "tf_adapters.launch.table_search",
}

__all__ = ["__version__", *_MODULES, *_MEMBERS]


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"tf_adapters.{name}")
    if name in _MEMBERS:
        return getattr(importlib.import_module(_MEMBERS[name]), name)
    raise AttributeError(f"`tf_adapters` has no `{name}`.{_where_it_is(name)}")


def _where_it_is(name):
    """Returns where a class is that was looked for here, a sentence."""
    for module in ("methods", "heads", "layers"):
        # Python itself looks for names that are no class's.
        if name[:1].isupper() and name in dir(__getattr__(module)):
            return f" Did you mean `tf_adapters.{module}.{name}`?"
    return checks.did_you_mean(name, __all__)


def __dir__():
    return __all__
