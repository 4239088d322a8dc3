"""The methods, each a frozen dataclass of its hyper-parameters.

A method has

- `make_slots(num_blocks, width, ffn_width)`: one dict of slot layers for each
  block, see `tf_adapters.models.adapted_encoder`; a layer may recur;
- `trainable_encoder_variables(encoder)`: what trains of the encoder itself;

and, where it needs them,

- `reparameterize(model)`: pairs of a variable and the function, a layer, that
  gives its value in a forward pass, see
  `tf_adapters.layers.reparameterization`;
- `penalty(model)`: a scalar that joins the loss;
- `report(model)`: numbers about the trained method for `result.json`;
- `last_phase_step(total_steps)` and `start_last_phase(model)`: the step after
  which the trainer calls the latter; only weights from then on count, and the
  schedule begins anew, with the rate multiplied by
  `last_phase_learning_rate_multiplier`;
- `reopen(model)`: lets go on training what an adapter folder has as final;
- `pack(tensors)` and `unpack(tensors, shapes)`: a smaller form of the tensors
  for the adapter folder.
"""

import dataclasses

from tf_adapters.common import dataclass_config
from tf_adapters.common.suggestions import check_known
from tf_adapters.methods.adapter_bias import AdapterBias
from tf_adapters.methods.baselines import BitFit
from tf_adapters.methods.baselines import Full
from tf_adapters.methods.baselines import HeadOnly
from tf_adapters.methods.baselines import LayerNorm
from tf_adapters.methods.baselines import TopLayers
from tf_adapters.methods.diff_pruning import DiffPruning
from tf_adapters.methods.fusion import Fusion
from tf_adapters.methods.houlsby import Houlsby
from tf_adapters.methods.lora import LoRA
from tf_adapters.methods.multitask import MultiTask
from tf_adapters.methods.pfeiffer import Pfeiffer
from tf_adapters.methods.projected_attention import ProjectedAttention

METHODS = {
    "full": Full,
    "head_only": HeadOnly,
    "top_layers": TopLayers,
    "layer_norm": LayerNorm,
    "bitfit": BitFit,
    "houlsby": Houlsby,
    "pfeiffer": Pfeiffer,
    "adapter_bias": AdapterBias,
    "lora": LoRA,
    "diff_pruning": DiffPruning,
    "fusion": Fusion,
    "projected_attention": ProjectedAttention,
    "multitask": MultiTask,
}


def to_config(method):
    """Returns a method as a dict of plain values with its `name`.

    A parameter that is a method becomes such a dict too.
    """
    name = next(key for key, cls in METHODS.items() if cls is type(method))
    values = {
        field.name: getattr(method, field.name)
        for field in dataclasses.fields(method)
    }
    return {"name": name} | {
        key: to_config(value) if type(value) in METHODS.values() else value
        for key, value in values.items()
    }


def from_config(config):
    """Returns the method that `to_config` described.

    Raises:
        UserError: If the name or a hyper-parameter is not known, or has the
            wrong type.
    """
    options = dict(config)
    name = options.pop("name", None)
    check_known("method", name, METHODS)
    if isinstance(options.get("adapter"), dict):
        options["adapter"] = from_config(options["adapter"])
    return dataclass_config.from_dict(METHODS[name], options, "method.")
