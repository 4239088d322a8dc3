"""The methods, each a frozen dataclass of its hyper-parameters in one file.

`method.py` has the contract, `tf_adapters.layers.slot` the places in which a
method puts what it adds. Every file of this folder is imported, and each class
that `register` names in one is here by its name: `methods.Houlsby`.
"""

import importlib
import pkgutil

from tf_adapters.methods.method import METHODS
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.method import from_config
from tf_adapters.methods.method import name_of
from tf_adapters.methods.method import register
from tf_adapters.methods.method import to_config

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
# A file that is called as its method would be answered first, and cannot be
# called.
for _name in METHODS.keys() & globals().keys():
    del globals()[_name]


def __getattr__(name):
    raise METHODS.no_attribute(__name__, name)
