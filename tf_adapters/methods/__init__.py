"""The methods: frozen dataclasses of hyper-parameters, each in its own file.

`method.py` has their base class. `tf_adapters.layers.slot` lists the places of
an encoder at which a method can attach slots. Every file in this folder is
imported, and each registered class is an attribute of this package, such as
`methods.Houlsby`.
"""

import importlib
import pkgutil

from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.registry import METHODS
from tf_adapters.methods.registry import from_config
from tf_adapters.methods.registry import name_of
from tf_adapters.methods.registry import register
from tf_adapters.methods.registry import to_config

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "METHODS",
    "EncoderShape",
    "Method",
    "from_config",
    "name_of",
    "register",
    "to_config",
]
globals().update({cls.__name__: cls for cls in METHODS.values()})
# A module that has the name of its method would shadow it, and a module cannot
# be called. `__getattr__` reports the class instead.
for _name in METHODS.keys() & globals().keys():
    del globals()[_name]


def __getattr__(name):
    raise METHODS.no_attribute(__name__, name)
