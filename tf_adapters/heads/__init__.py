"""The heads: frozen dataclasses, one file for each kind of output.

`head.py` has their base class. Every file in this folder is imported, and each
registered class is an attribute of this package, such as `heads.Span`. The code
of the trainer, data and export does not refer to individual heads.
"""

import importlib
import pkgutil

from tf_adapters.heads.head import Head
from tf_adapters.heads.registry import HEADS
from tf_adapters.heads.registry import for_task
from tf_adapters.heads.registry import from_config
from tf_adapters.heads.registry import name_of
from tf_adapters.heads.registry import register
from tf_adapters.heads.registry import to_config
from tf_adapters.tasks.output_kinds import OutputKind

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "HEADS",
    "Head",
    "OutputKind",
    "for_task",
    "from_config",
    "name_of",
    "register",
    "to_config",
]
globals().update({cls.__name__: cls for cls in HEADS.values()})
# A module that has the name of its head would shadow it, and a module cannot be
# called. `__getattr__` reports the class instead.
for _name in HEADS.keys() & globals().keys():
    del globals()[_name]


def __getattr__(name):
    raise HEADS.no_attribute(__name__, name)
