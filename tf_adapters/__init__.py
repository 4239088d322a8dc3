"""Adapters for Keras: one frozen encoder, many tasks."""

import importlib
import typing
from typing import TYPE_CHECKING

from tf_adapters.common import checks
from tf_adapters.common import onednn

if TYPE_CHECKING:
    # For editors and type checkers, which do not run `__getattr__`.
    from tf_adapters import encoders as encoders
    from tf_adapters import heads as heads
    from tf_adapters import layers as layers
    from tf_adapters import methods as methods
    from tf_adapters import tasks as tasks
    from tf_adapters.common.errors import AdapterError as AdapterError
    from tf_adapters.common.errors import ConfigError as ConfigError
    from tf_adapters.common.errors import DataError as DataError
    from tf_adapters.common.errors import UserError as UserError
    from tf_adapters.data.tokens.packing import TextPacker as TextPacker
    from tf_adapters.encoders.encoder import Encoder as Encoder
    from tf_adapters.encoders.load import load_encoder as load_encoder
    from tf_adapters.export.litert_model import export_litert as export_litert
    from tf_adapters.export.onnx_model import export_onnx as export_onnx
    from tf_adapters.export.openvino_model import (
        export_openvino as export_openvino,
    )
    from tf_adapters.export.saved_model import export_model as export_model
    from tf_adapters.launch.table_run import train as train
    from tf_adapters.launch.table_search import tune as tune
    from tf_adapters.merging.merge import merge_adapters as merge_adapters
    from tf_adapters.merging.merge import search_weights as search_weights
    from tf_adapters.models.adapted_encoder import (
        AdaptedEncoder as AdaptedEncoder,
    )
    from tf_adapters.models.adapter_model import AdapterModel as AdapterModel
    from tf_adapters.models.adapter_model import adapt as adapt
    from tf_adapters.models.bank_model import BankModel as BankModel
    from tf_adapters.models.bank_model import load_bank as load_bank
    from tf_adapters.models.composed_model import compose as compose
    from tf_adapters.models.composed_model import swap_adapters as swap_adapters
    from tf_adapters.models.composition import Average as Average
    from tf_adapters.models.composition import BatchSplit as BatchSplit
    from tf_adapters.models.composition import Parallel as Parallel
    from tf_adapters.models.composition import Stack as Stack
    from tf_adapters.models.fusion_model import fuse as fuse
    from tf_adapters.models.parallel_model import ParallelModel as ParallelModel
    from tf_adapters.models.saving import load_adapter as load_adapter
    from tf_adapters.models.saving import save_adapter as save_adapter
    from tf_adapters.models.variable_groups import (
        trained_table as trained_table,
    )
    from tf_adapters.text.loading import load as load
    from tf_adapters.text.text_model import TextModel as TextModel

__version__ = "0.1.0"

# This must run before any module of this package imports TensorFlow.
onednn.switch_on()

# The public names, and the modules that define them. Modules are imported on
# first use, because KerasHub alone takes seconds to import.
_MODULES = ("encoders", "heads", "layers", "methods", "tasks")
_MEMBERS = {
    "AdaptedEncoder": "tf_adapters.models.adapted_encoder",
    "AdapterError": "tf_adapters.common.errors",
    "AdapterModel": "tf_adapters.models.adapter_model",
    "Average": "tf_adapters.models.composition",
    "BankModel": "tf_adapters.models.bank_model",
    "BatchSplit": "tf_adapters.models.composition",
    "ConfigError": "tf_adapters.common.errors",
    "DataError": "tf_adapters.common.errors",
    "Encoder": "tf_adapters.encoders.encoder",
    "Parallel": "tf_adapters.models.composition",
    "ParallelModel": "tf_adapters.models.parallel_model",
    "Stack": "tf_adapters.models.composition",
    "TextModel": "tf_adapters.text.text_model",
    "TextPacker": "tf_adapters.data.tokens.packing",
    "UserError": "tf_adapters.common.errors",
    "adapt": "tf_adapters.models.adapter_model",
    "compose": "tf_adapters.models.composed_model",
    "export_litert": "tf_adapters.export.litert_model",
    "export_model": "tf_adapters.export.saved_model",
    "export_onnx": "tf_adapters.export.onnx_model",
    "export_openvino": "tf_adapters.export.openvino_model",
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

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "__version__",
    *_MODULES,
    *_MEMBERS,
]


def __getattr__(name: str) -> typing.Any:
    if name in _MODULES:
        return importlib.import_module(f"tf_adapters.{name}")
    if name in _MEMBERS:
        return getattr(importlib.import_module(_MEMBERS[name]), name)
    raise AttributeError(f"`tf_adapters` has no `{name}`.{_where_it_is(name)}")


def _where_it_is(name: str) -> str:
    """Returns a hint for an unknown attribute of `tf_adapters`.

    The hint names a class in a submodule or a similar attribute, or is empty.
    """
    for module in ("methods", "heads", "layers"):
        # Python itself looks up names such as `__path__`, which are not
        # classes.
        if name[:1].isupper() and name in dir(__getattr__(module)):
            return f" Did you mean `tf_adapters.{module}.{name}`?"
    return checks.did_you_mean(name, __all__)


def __dir__() -> list[str]:
    return __all__
