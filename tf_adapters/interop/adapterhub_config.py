"""AdapterHub's configurations as methods, and back (`adapters` 1.3.0)."""

from tf_adapters import methods
from tf_adapters.common.errors import AdapterError

_ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_orig": "gelu",
    "swish": "silu",
    "silu": "silu",
    "tanh": "tanh",
    "leakyrelu": "leaky_relu",
    "linear": "linear",
}
# The library's for ours, where several mean one.
_NON_LINEARITIES = {
    **{ours: theirs for theirs, ours in _ACTIVATIONS.items()},
    "gelu": "gelu",
    "gelu_tanh": "gelu_new",
    "silu": "swish",
}
_BOTTLENECK = {
    "adapter_residual_before_ln": False,
    "cross_adapter": False,
    "dropout": 0.0,
    "factorized_phm_W": True,
    "factorized_phm_rule": False,
    "hypercomplex_nonlinearity": "glorot-uniform",
    "init_weights": "bert",
    "init_weights_seed": None,
    "inv_adapter": None,
    "inv_adapter_reduction_factor": None,
    "is_parallel": False,
    "learn_phm": True,
    "leave_out": [],
    "ln_after": False,
    "ln_before": False,
    "mh_adapter": False,
    "non_linearity": "relu",
    "original_ln_after": True,
    "original_ln_before": False,
    "output_adapter": True,
    "phm_bias": True,
    "phm_c_init": "normal",
    "phm_dim": 4,
    "phm_init_range": 0.0001,
    "phm_layer": False,
    "phm_rank": 1,
    "reduction_factor": 16,
    "residual_before_ln": True,
    "scaling": 1.0,
    "shared_W_phm": False,
    "shared_phm_rule": True,
    "stochastic_depth": 0.0,
    "use_gating": False,
}
_LORA = {
    "alpha": 8,
    "architecture": "lora",
    "attn_matrices": ["q", "v"],
    "composition_mode": "add",
    "dropout": 0.0,
    "dtype": None,
    "init_weights": "lora",
    "init_weights_seed": None,
    "intermediate_lora": False,
    "leave_out": [],
    "output_lora": False,
    "r": 8,
    "selfattn_lora": True,
    "use_dora": False,
    "use_gating": False,
    "vera_b": None,
    "vera_d": None,
}
_PREFIX = {
    "architecture": "prefix_tuning",
    "bottleneck_size": 512,
    "cross_prefix": True,
    "dropout": 0.0,
    "encoder_prefix": True,
    "flat": False,
    "init_weights_seed": None,
    "leave_out": [],
    "non_linearity": "tanh",
    "prefix_length": 30,
    "shared_gating": True,
    "use_gating": False,
}
_PROMPT = {
    "architecture": "prompt_tuning",
    "combine": "prefix",
    "init_weights_seed": None,
    "prompt_init": "random_uniform",
    "prompt_init_text": None,
    "prompt_length": 10,
}
_ATTENTION = {"q": "query", "k": "key", "v": "value"}
_RESIDUALS = {True: "sublayer_output", "post_add": "sum", False: "read"}
_STANDS = {"prefix": "before", "prefix_after_bos": "after_first"}
# Of version 1 files, which have more keys of no effect here.
_OLD_KEYS = {"invertible_adapter", "new_attention_norm", "type", "patience"}
_OLD_KEYS |= {"attention_type"}


class _Config:
    """A configuration of which every key must be known or empty.

    Args:
        given: Dict.
        defaults: Dict from known key to default.
        version: Tuple of integers, that of `adapters`.
    """

    def __init__(self, given, defaults, version):
        self.values = {**defaults, **given}
        self.version = version
        for key, value in given.items():
            if key not in defaults and key not in _OLD_KEYS and value:
                raise AdapterError(
                    f"The configuration has `{key}: {value!r}`, which this "
                    "version of tf_adapters does not know."
                )

    def __getitem__(self, key):
        return self.values[key]

    def check(self, key, *allowed):
        """Raises an `AdapterError` unless a value is one of some."""
        if self[key] not in allowed:
            raise AdapterError(
                f"tf_adapters has no method with `{key}: {self[key]!r}`."
            )

    def activation(self):
        """Returns our name of `non_linearity`."""
        name = str(self["non_linearity"]).lower()
        if not self.version and name == "gelu":
            # Before version 1 this was the tanh form.
            name = "gelu_new"
        if name not in _ACTIVATIONS:
            raise AdapterError(
                f"tf_adapters has no activation `{name}`. It has those called "
                f"{', '.join(sorted(_ACTIVATIONS))}."
            )
        return _ACTIVATIONS[name]


def read_method(config, width, version):
    """Returns the method that a configuration describes.

    Args:
        config: Dict, what stands under `config` in `adapter_config.json`.
        width: Width of the encoder.
        version: Tuple of integers, the version of `adapters`; empty for files
            without one.

    Raises:
        AdapterError: If no method of ours computes that.
    """
    kind = config.get("architecture")
    if kind == "union":
        parts = (read_method(c, width, version) for c in config["configs"])
        return methods.Union(tuple(parts))
    readers = {
        None: (_read_bottleneck, {**_BOTTLENECK, "architecture": None}),
        "lora": (_read_lora, _LORA),
        "prefix_tuning": (_read_prefix, _PREFIX),
        "prompt_tuning": (_read_prompt, _PROMPT),
    }
    if kind not in readers:
        raise AdapterError(f"tf_adapters has no method `{kind}` of AdapterHub.")
    reader, defaults = readers[kind]
    return reader(_Config(config, defaults, version), width)


def _read_bottleneck(c, width):
    c.check("cross_adapter", False, None)
    old = c.values.get("invertible_adapter")
    if old:
        c.values["inv_adapter"] = old["block_type"]
        c.values["inv_adapter_reduction_factor"] = old["reduction_factor"]
    c.check("inv_adapter", None, "nice")
    method = _read_compacter(c, width) if c["phm_layer"] else _plain(c, width)
    if not c["inv_adapter"]:
        return method
    factor = float(c["inv_adapter_reduction_factor"])
    coupling = methods.Invertible(factor, c.activation())
    return methods.Union((method, coupling))


def _units(c, width):
    factor = c["reduction_factor"]
    factors = list(factor.values()) if isinstance(factor, dict) else [factor]
    units = {max(1, int(width // float(one))) for one in factors}
    if len(units) > 1:
        raise AdapterError(
            "Its bottlenecks are of several widths, and those of tf_adapters "
            f"are of one: `reduction_factor: {factor}`."
        )
    return units.pop()


def _placement(c):
    """Returns `"houlsby"`, `"pfeiffer"`, or `None` of another form."""
    plain = {
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
    if any(c[key] != value for key, value in plain.items()):
        return None
    placements = {(True, False): "houlsby", (False, True): "pfeiffer"}
    return placements.get((c["mh_adapter"], c["original_ln_before"]))


def _plain(c, width):
    options = {
        "units": _units(c, width),
        "activation": c.activation(),
        "leave_out": tuple(c["leave_out"]),
    }
    placement = _placement(c)
    if placement == "houlsby":
        return methods.Houlsby(train_layer_norms=False, **options)
    if placement == "pfeiffer":
        return methods.Pfeiffer(**options)
    is_learned = isinstance(c["scaling"], str)
    learned = {"learned": "scalar", "channel": "channel"}
    if is_learned:
        c.check("scaling", *learned)
    return methods.BottleneckForms(
        position=_one_of(c, "mh_adapter", "output_adapter", "position"),
        parallel=bool(c["is_parallel"]),
        pretrained_norm=_one_of(
            c, "original_ln_before", "original_ln_after", "norm"
        ),
        residual=_RESIDUALS[c["residual_before_ln"]],
        new_norm=_one_of(c, "ln_before", "ln_after", "norm"),
        residual_in_new_norm=bool(c["adapter_residual_before_ln"]),
        scaling=1.0 if is_learned else float(c["scaling"]),
        learned_scaling=learned[c["scaling"]] if is_learned else "none",
        use_gating=bool(c["use_gating"]),
        dropout=float(c["dropout"]),
        initialization="zero_up" if c["is_parallel"] else "normal",
        **options,
    )


def _one_of(c, first, second, kind):
    names = {
        "position": {(1, 0): "bottom", (0, 1): "top", (1, 1): "both"},
        "norm": {
            (0, 0): "none",
            (1, 0): "before",
            (0, 1): "after",
            (1, 1): "both",
        },
    }[kind]
    if kind == "norm" and c["is_parallel"] and first == "original_ln_before":
        # A parallel adapter reads what no norm is before.
        return names[(0, int(bool(c[second])))]
    found = (int(bool(c[first])), int(bool(c[second])))
    if found not in names:
        raise AdapterError("Its configuration has adapters in no place.")
    return names[found]


def _read_compacter(c, width):
    placement = _placement(c)
    for key in ("factorized_phm_W", "shared_phm_rule", "phm_bias"):
        c.check(key, True)
    for key in ("shared_W_phm", "factorized_phm_rule"):
        c.check(key, False)
    if placement is None:
        raise AdapterError(
            "tf_adapters has Compacter in the places of Houlsby and Pfeiffer, "
            "without further options."
        )
    return methods.Compacter(
        placement,
        _units(c, width),
        None,
        c.activation(),
        c["phm_dim"],
        c["phm_rank"],
        tuple(c["leave_out"]),
    )


def _read_lora(c, width):
    for key in ("vera_d", "vera_b"):
        c.check(key, None)
    c.check("use_dora", False)
    attention = c["attn_matrices"] if c["selfattn_lora"] else []
    chosen = [_ATTENTION[name] for name in attention]
    chosen += ["ffn_up"] if c["intermediate_lora"] else []
    chosen += ["ffn_down"] if c["output_lora"] else []
    left_out = tuple(c["leave_out"])
    # From 0.1.0 on and before 1.1.0 the scale was 1, whatever the file says;
    # in adapter-transformers it was not.
    ignored_alpha = (0,) <= c.version < (1, 1, 0)
    alpha = c["r"] if ignored_alpha else c["alpha"]
    if c["composition_mode"] == "scale":
        is_ia3 = set(chosen) == {"key", "value", "ffn_up"}
        if not is_ia3 or (c["r"], alpha) != (1, 1) or c["use_gating"]:
            raise AdapterError(
                "tf_adapters has `composition_mode: scale` as (IA)^3 only: on "
                "key, value and the intermediate layer, with `r: 1` and "
                "`alpha: 1`."
            )
        return methods.IA3(leave_out=left_out)
    c.check("composition_mode", "add")
    return methods.LoRA(
        c["r"],
        float(alpha),
        float(c["dropout"]),
        tuple(chosen),
        bool(c["use_gating"]),
        left_out,
    )


def _read_prefix(c, width):
    c.check("encoder_prefix", True)
    c.check("shared_gating", *((True,) if c["use_gating"] else (True, False)))
    return methods.PrefixTuning(
        c["prefix_length"],
        0 if c["flat"] else c["bottleneck_size"],
        c.activation(),
        float(c["dropout"]),
        bool(c["use_gating"]),
        leave_out=tuple(c["leave_out"]),
    )


def _read_prompt(c, width):
    c.check("combine", *_STANDS)
    return methods.PromptTuning(
        c["prompt_length"], stands=_STANDS[c["combine"]]
    )


def write_method(method, width):
    """Returns the configuration that describes a method.

    Args:
        method: `Method`.
        width: Width of the encoder.

    Raises:
        AdapterError: If AdapterHub has no such method.
    """
    if isinstance(method, methods.Union):
        return _write_union(method, width)
    writers = {
        methods.Houlsby: _write_bottleneck,
        methods.Pfeiffer: _write_bottleneck,
        methods.BottleneckForms: _write_form,
        methods.Compacter: _write_compacter,
        methods.LoRA: _write_lora,
        methods.IA3: _write_ia3,
        methods.PrefixTuning: _write_prefix,
        methods.PromptTuning: _write_prompt,
    }
    if type(method) not in writers:
        raise _refusal(f"the method `{methods.name_of(method)}`")
    return writers[type(method)](method, width)


def _refusal(what, advice=""):
    return AdapterError(f"AdapterHub's format has no room for {what}.{advice}")


def _write_union(method, width):
    parts = {type(part): part for part in method.parts}
    if len(parts) < len(method.parts):
        raise _refusal("two parts of one kind in a union")
    coupling = parts.pop(methods.Invertible, None)
    configs = [write_method(part, width) for part in parts.values()]
    if coupling is not None:
        bottleneck = next((c for c in configs if "mh_adapter" in c), None)
        shared = bottleneck and bottleneck["non_linearity"]
        if shared != _NON_LINEARITIES[coupling.activation]:
            raise _refusal(
                "an invertible adapter without a bottleneck of its activation"
            )
        factor = coupling.reduction_factor
        bottleneck["inv_adapter"] = "nice"
        bottleneck["inv_adapter_reduction_factor"] = _number(factor)
    if len(configs) == 1:
        return configs[0]
    return {"architecture": "union", "configs": configs}


def _number(value):
    return int(value) if float(value).is_integer() else value


def _reduction_factor(method, width):
    units = methods.bottleneck_slots.width_of_bottleneck(method, width)
    if width % units == 0:
        return width // units
    # The library divides in floating point; this comes out right.
    return width / (units + 0.5)


def _write_bottleneck(method, width):
    is_pfeiffer = isinstance(method, methods.Pfeiffer)
    return {
        **_BOTTLENECK,
        "mh_adapter": not is_pfeiffer,
        "original_ln_before": is_pfeiffer,
        "non_linearity": _NON_LINEARITIES[method.activation],
        "reduction_factor": _reduction_factor(method, width),
        "leave_out": list(method.leave_out),
    }


def _write_form(method, width):
    if method.num_hidden_layers != 1 or method.combine != "add":
        raise _refusal("more hidden layers, or products, in an adapter")
    scalings = {"none": float(method.scaling), "scalar": "learned"}
    residuals = {ours: theirs for theirs, ours in _RESIDUALS.items()}
    return {
        **_BOTTLENECK,
        "mh_adapter": method.position in ("bottom", "both"),
        "output_adapter": method.position in ("top", "both"),
        "is_parallel": method.parallel,
        "original_ln_before": method.pretrained_norm in ("before", "both"),
        "original_ln_after": method.pretrained_norm in ("after", "both"),
        "residual_before_ln": residuals[method.residual],
        "ln_before": method.new_norm in ("before", "both"),
        "ln_after": method.new_norm in ("after", "both"),
        "adapter_residual_before_ln": method.residual_in_new_norm,
        "scaling": scalings.get(method.learned_scaling, "channel"),
        "use_gating": method.use_gating,
        "dropout": float(method.dropout),
        "init_weights": "mam_adapter" if method.parallel else "bert",
        "non_linearity": _NON_LINEARITIES[method.activation],
        "reduction_factor": _reduction_factor(method, width),
        "leave_out": list(method.leave_out),
    }


def _write_compacter(method, width):
    is_pfeiffer = method.placement == "pfeiffer"
    return {
        **_BOTTLENECK,
        "mh_adapter": not is_pfeiffer,
        "original_ln_before": is_pfeiffer,
        "phm_layer": True,
        "phm_dim": method.order,
        "phm_rank": method.rank,
        "non_linearity": _NON_LINEARITIES[method.activation],
        "reduction_factor": _reduction_factor(method, width),
        "leave_out": list(method.leave_out),
    }


def _write_lora(method, width):
    letters = {ours: letter for letter, ours in _ATTENTION.items()}
    if "output" in method.projections:
        raise _refusal(
            "LoRA on attention's output projection",
            " PEFT's has: --format=peft.",
        )
    attention = [letters[p] for p in method.projections if p in letters]
    return {
        **_LORA,
        "r": method.rank,
        "alpha": _number(method.alpha),
        "dropout": float(method.dropout),
        "selfattn_lora": bool(attention),
        "attn_matrices": attention,
        "intermediate_lora": "ffn_up" in method.projections,
        "output_lora": "ffn_down" in method.projections,
        "use_gating": method.use_gating,
        "leave_out": list(method.leave_out),
    }


def _write_ia3(method, width):
    if method.form != "adapterhub":
        raise _refusal(
            "PEFT's form of (IA)^3, another function",
            " Export it with --format=peft, or train with "
            "method.form=adapterhub.",
        )
    return {
        **_LORA,
        "r": 1,
        "alpha": 1,
        "attn_matrices": ["k", "v"],
        "composition_mode": "scale",
        "init_weights": "ia3",
        "intermediate_lora": True,
        "leave_out": list(method.leave_out),
    }


def _write_prefix(method, width):
    if method.form != "adapterhub":
        raise _refusal(
            "PEFT's form of prefix tuning",
            " Export it with --format=peft, or train with "
            "method.form=adapterhub.",
        )
    return {
        **_PREFIX,
        "prefix_length": method.prefix_length,
        "flat": not method.hidden_units,
        "bottleneck_size": method.hidden_units or 512,
        "non_linearity": _NON_LINEARITIES[method.activation],
        "dropout": float(method.dropout),
        "use_gating": method.use_gating,
        "leave_out": list(method.leave_out),
    }


def _write_prompt(method, width):
    if method.form != "adapterhub":
        raise _refusal(
            "PEFT's form of prompt tuning",
            " Export it with --format=peft, or train with "
            "method.form=adapterhub.",
        )
    combine = {ours: theirs for theirs, ours in _STANDS.items()}
    return {
        **_PROMPT,
        "prompt_length": method.prompt_length,
        "combine": combine[method.stands],
    }
