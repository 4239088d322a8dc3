"""The methods: frozen dataclasses of hyper-parameters, each in its own file.

`method.py` has their base class. A method attaches layers, called slots, to an
encoder; `tf_adapters.layers.slot` lists the possible positions. Import each new
method here, so that it is registered and editors know its name.
"""

import typing

from tf_adapters.methods.adapter_bias import AdapterBias
from tf_adapters.methods.baselines import BitFit
from tf_adapters.methods.baselines import Full
from tf_adapters.methods.baselines import HeadOnly
from tf_adapters.methods.baselines import LayerNorm
from tf_adapters.methods.baselines import TopLayers
from tf_adapters.methods.bottleneck_forms import BottleneckForms
from tf_adapters.methods.compacter import Compacter
from tf_adapters.methods.diff_pruning import DiffPruning
from tf_adapters.methods.fusion import Fusion
from tf_adapters.methods.houlsby import Houlsby
from tf_adapters.methods.ia3 import IA3
from tf_adapters.methods.invertible import Invertible
from tf_adapters.methods.lora import LoRA
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.multitask import MultiTask
from tf_adapters.methods.pfeiffer import Pfeiffer
from tf_adapters.methods.prefix_tuning import PrefixTuning
from tf_adapters.methods.projected_attention import ProjectedAttention
from tf_adapters.methods.prompt_tuning import PromptTuning
from tf_adapters.methods.registry import METHODS
from tf_adapters.methods.registry import from_config
from tf_adapters.methods.registry import name_of
from tf_adapters.methods.registry import register
from tf_adapters.methods.registry import to_config
from tf_adapters.methods.union import Union

__all__ = [
    "IA3",
    "METHODS",
    "AdapterBias",
    "BitFit",
    "BottleneckForms",
    "Compacter",
    "DiffPruning",
    "EncoderShape",
    "Full",
    "Fusion",
    "HeadOnly",
    "Houlsby",
    "Invertible",
    "LayerNorm",
    "LoRA",
    "Method",
    "MultiTask",
    "Pfeiffer",
    "PrefixTuning",
    "ProjectedAttention",
    "PromptTuning",
    "TopLayers",
    "Union",
    "from_config",
    "name_of",
    "register",
    "to_config",
]
# Otherwise `methods.lora` would be the module, which cannot be called. Now
# `__getattr__` raises an error for it that names the class.
for _name in METHODS.keys() & globals().keys():
    del globals()[_name]


def __getattr__(name: str) -> typing.Any:
    raise METHODS.no_attribute(__name__, name)
