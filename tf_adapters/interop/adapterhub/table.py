"""An `Entry` for each method that AdapterHub has (`adapters` 1.3.0).

In the rows of bottlenecks, `reduction_factor` is the number of units, because
AdapterHub's factor also depends on the encoder's width.
"""

from collections.abc import Callable
from typing import Any

from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.interop.adapterhub import keys
from tf_adapters.interop.adapterhub import names
from tf_adapters.interop.method_table import Entry
from tf_adapters.interop.method_table import Row
from tf_adapters.interop.method_table import as_number
from tf_adapters.interop.method_table import by


def _activation(name: str) -> str:
    name = str(name).lower()
    if name not in keys.ACTIVATIONS:
        raise AdapterError(
            f"tf_adapters has no activation `{cut(name)}`. It has those "
            f"called {', '.join(sorted(keys.ACTIVATIONS))}."
        )
    return keys.ACTIVATIONS[name]


_ACTIVATION = Row(
    "non_linearity",
    "activation",
    _activation,
    keys.NON_LINEARITIES.__getitem__,
)
_DROPOUT = Row("dropout", "dropout", float, float)
_GATING = Row("use_gating", "use_gating", bool)
_LEAVE_OUT = Row("leave_out", "leave_out", tuple, list)
# Values for all methods with bottlenecks except `BottleneckForms`.
_PLAIN = {
    "is_parallel": False,
    "residual_before_ln": True,
    "adapter_residual_before_ln": False,
    "ln_before": False,
    "ln_after": False,
    "original_ln_after": True,
    "scaling": 1.0,
    "use_gating": False,
    "dropout": 0.0,
    "output_adapter": True,
}
_PLACEMENTS = {(True, False): "houlsby", (False, True): "pfeiffer"}
_POSITIONS = {(True, False): "bottom", (False, True): "top"}
_POSITIONS |= {(True, True): "both"}
_NORMS = {(False, False): "none", (True, False): "before"}
_NORMS |= {(False, True): "after", (True, True): "both"}
_GATES = {(False, False): False, (False, True): False, (True, True): True}


def _scaling(value: str | float) -> tuple[float, str]:
    """Converts AdapterHub's `scaling` to `(scaling, learned_scaling)`."""
    if isinstance(value, str):
        return 1.0, {"learned": "scalar", "channel": "channel"}[value]
    return float(value), "none"


def _scaling_back(scaling: float, learned: str) -> str | float:
    scalings = {"none": float(scaling), "scalar": "learned"}
    return scalings.get(learned, "channel")


def _bottleneck(
    method: type[methods.Method],
    tensor_names: Callable[..., Any],
    *rows: Row,
    where: dict[str, Any] | tuple[()] = (),
    needs: dict[str, Any] | tuple[()] = (),
    **options: Any,
) -> Entry:
    """Returns the `Entry` of a method with bottlenecks.

    `rows` and `needs` are added to those that all such methods share.
    """
    return Entry(
        method,
        (Row("reduction_factor", "units"), _ACTIVATION, _LEAVE_OUT, *rows),
        tensor_names,
        keys.BOTTLENECK,
        where=dict(where),
        needs={
            "cross_adapter": (False, None),
            "inv_adapter": (None, "nice"),
            **dict(needs),
        },
        **options,
    )


_HOULSBY = _bottleneck(
    methods.Houlsby,
    names.bottlenecks,
    where={**_PLAIN, "mh_adapter": True, "original_ln_before": False},
    fixed={"train_layer_norms": False},
)
_PFEIFFER = _bottleneck(
    methods.Pfeiffer,
    names.bottlenecks,
    where={**_PLAIN, "mh_adapter": False, "original_ln_before": True},
)
_COMPACTER = _bottleneck(
    methods.Compacter,
    names.compacter,
    Row("mh_adapter original_ln_before", "placement", *by(_PLACEMENTS)),
    Row("phm_dim", "order"),
    Row("phm_rank", "rank"),
    where={"phm_layer": True},
    needs={
        **{key: (value,) for key, value in _PLAIN.items()},
        "factorized_phm_W": (True,),
        "shared_phm_rule": (True,),
        "phm_bias": (True,),
        "shared_W_phm": (False,),
        "factorized_phm_rule": (False,),
    },
)
_FORMS = _bottleneck(
    methods.BottleneckForms,
    names.forms,
    Row("mh_adapter output_adapter", "position", *by(_POSITIONS)),
    Row(
        "is_parallel init_weights",
        "parallel initialization",
        lambda parallel, _: (parallel, "zero_up" if parallel else "normal"),
        lambda parallel, _: (parallel, "mam_adapter" if parallel else "bert"),
    ),
    Row("original_ln_before original_ln_after", "pretrained_norm", *by(_NORMS)),
    Row("residual_before_ln", "residual", *by(keys.RESIDUALS)),
    Row("ln_before ln_after", "new_norm", *by(_NORMS)),
    Row("adapter_residual_before_ln", "residual_in_new_norm", bool),
    Row("scaling", "scaling learned_scaling", _scaling, _scaling_back),
    _GATING,
    _DROPOUT,
    fixed={"num_hidden_layers": 1, "combine": "add"},
)


def _projections(
    matrices: list[str], attention: bool, up: bool, down: bool
) -> tuple[str, ...]:
    found = [keys.ATTENTION[m] for m in (matrices if attention else ())]
    return (*found, *["ffn_up"] * bool(up), *["ffn_down"] * bool(down))


def _projections_back(
    projections: tuple[str, ...],
) -> tuple[list[str], bool, bool, bool]:
    letters = {ours: letter for letter, ours in keys.ATTENTION.items()}
    if "output" in projections:
        raise AdapterError(
            "AdapterHub's format cannot store LoRA on attention's output "
            "projection. PEFT's has: --format=peft."
        )
    matrices = [letters[name] for name in projections if name in letters]
    feed_forward = ("ffn_up" in projections, "ffn_down" in projections)
    return matrices, bool(matrices), *feed_forward


_LORA_MODULES = "attn_matrices selfattn_lora intermediate_lora output_lora"
_OF_LORA = {"use_dora": (False,), "vera_d": (None,), "vera_b": (None,)}
_LORA = Entry(
    methods.LoRA,
    (
        Row("r", "rank"),
        Row("alpha", "alpha", float, as_number),
        Row(_LORA_MODULES, "projections", _projections, _projections_back),
        _DROPOUT,
        _GATING,
        _LEAVE_OUT,
    ),
    names.lora,
    keys.LORA,
    needs={**_OF_LORA, "composition_mode": ("add",)},
)


def _ia3(r: int, alpha: float, use_gating: bool, *modules: Any) -> str:
    is_ia3 = {*_projections(*modules)} == {"key", "value", "ffn_up"}
    if not is_ia3 or (r, alpha) != (1, 1) or use_gating:
        raise AdapterError(
            "tf_adapters has `composition_mode: scale` as (IA)^3 only: on key, "
            "value and the intermediate layer, with `r: 1` and `alpha: 1`."
        )
    return "adapterhub"


_IA3 = Entry(
    methods.IA3,
    (
        Row(
            f"r alpha use_gating {_LORA_MODULES}",
            "form",
            _ia3,
            lambda _: (1, 1, False, ["k", "v"], True, True, False),
        ),
        _LEAVE_OUT,
    ),
    names.ia3,
    {**keys.LORA, "init_weights": "ia3"},
    where={"composition_mode": "scale"},
    needs=_OF_LORA,
    fixed={"form": "adapterhub"},
)
_PREFIX = Entry(
    methods.PrefixTuning,
    (
        Row("prefix_length", "prefix_length"),
        Row(
            "flat bottleneck_size",
            "hidden_units",
            lambda flat, units: 0 if flat else units,
            lambda units: (not units, units or 512),
        ),
        Row(
            "use_gating shared_gating",
            "use_gating",
            by(_GATES)[0],
            lambda use_gating: (use_gating, True),
        ),
        _ACTIVATION,
        _DROPOUT,
        _LEAVE_OUT,
    ),
    names.prefix,
    keys.PREFIX,
    needs={"encoder_prefix": (True,)},
    fixed={"form": "adapterhub"},
)
_PROMPT = Entry(
    methods.PromptTuning,
    (
        Row("prompt_length", "prompt_length"),
        Row("combine", "stands", *by(keys.STANDS)),
    ),
    names.prompt,
    keys.PROMPT,
    fixed={"form": "adapterhub"},
)
# Dict from the `architecture` in a configuration to a tuple of entries. The
# first entry that fits the configuration is used.
ENTRIES = {
    None: (_COMPACTER, _HOULSBY, _PFEIFFER, _FORMS),
    "lora": (_IA3, _LORA),
    "prefix_tuning": (_PREFIX,),
    "prompt_tuning": (_PROMPT,),
}
BY_METHOD = {e.method: e for kind in ENTRIES.values() for e in kind}
