"""Converts AdapterHub's configurations to methods."""

from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.interop.adapterhub import keys


class _Config:
    """A configuration with defaults for the keys that it does not have.

    Raises an `AdapterError` if an unknown key has a value.

    Args:
        given: Dict, the configuration.
        defaults: Dict from known key to default.
        version: Tuple of integers, the version of `adapters`.
    """

    def __init__(self, given, defaults, version):
        self.values = {**defaults, **given}
        self.version = version
        for key, value in given.items():
            if key not in defaults and key not in keys.OLD_KEYS and value:
                raise AdapterError(
                    f"The configuration has `{key}: {shown(value)}`, which "
                    "this version of tf_adapters does not know."
                )

    def __getitem__(self, key):
        return self.values[key]

    def check(self, key, *allowed):
        """Raises an `AdapterError` unless a key has one of these values."""
        if self[key] not in allowed:
            raise AdapterError(
                f"tf_adapters has no method with `{key}: {shown(self[key])}`."
            )

    def activation(self):
        """Returns our name of the activation in `non_linearity`."""
        name = str(self["non_linearity"]).lower()
        if not self.version and name == "gelu":
            # Files without a version mean the tanh approximation.
            name = "gelu_new"
        if name not in keys.ACTIVATIONS:
            raise AdapterError(
                f"tf_adapters has no activation `{cut(name)}`. It has those "
                f"called {', '.join(sorted(keys.ACTIVATIONS))}."
            )
        return keys.ACTIVATIONS[name]


def read_method(config, width, version):
    """Returns the method that a configuration describes.

    Args:
        config: Dict, the value of `config` in `adapter_config.json`.
        width: Width of the encoder.
        version: Tuple of integers, the version of `adapters`. Empty for files
            without one.

    Raises:
        AdapterError: If tf_adapters has no equivalent method.
    """
    kind = config.get("architecture")
    if kind == "union":
        parts = (read_method(c, width, version) for c in config["configs"])
        return methods.Union(tuple(parts))
    readers = {
        None: (
            _read_bottleneck,
            {**keys.BOTTLENECK, "architecture": None},
        ),
        "lora": (_read_lora, keys.LORA),
        "prefix_tuning": (_read_prefix, keys.PREFIX),
        "prompt_tuning": (_read_prompt, keys.PROMPT),
    }
    if kind not in readers:
        raise AdapterError(
            f"tf_adapters has no method `{cut(kind)}` of AdapterHub."
        )
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
            "Its bottlenecks have several widths, but in tf_adapters all have "
            f"the same: `reduction_factor: {cut(factor)}`."
        )
    return units.pop()


def _placement(c):
    """Returns `"houlsby"`, `"pfeiffer"`, or `None` for another form."""
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
        residual=keys.RESIDUALS[c["residual_before_ln"]],
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
        # The input of a parallel adapter is not normalized.
        return names[(0, int(bool(c[second])))]
    found = (int(bool(c[first])), int(bool(c[second])))
    if found not in names:
        raise AdapterError("Its configuration attaches no adapters.")
    return names[found]


def _read_compacter(c, width):
    placement = _placement(c)
    for key in ("factorized_phm_W", "shared_phm_rule", "phm_bias"):
        c.check(key, True)
    for key in ("shared_W_phm", "factorized_phm_rule"):
        c.check(key, False)
    if placement is None:
        raise AdapterError(
            "tf_adapters has Compacter only at the positions of Houlsby and "
            "Pfeiffer, without further options."
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
    chosen = [keys.ATTENTION[name] for name in attention]
    chosen += ["ffn_up"] if c["intermediate_lora"] else []
    chosen += ["ffn_down"] if c["output_lora"] else []
    left_out = tuple(c["leave_out"])
    # Versions 0.1.0 to before 1.1.0 ignored alpha: the scale was always 1. In
    # adapter-transformers it was alpha / r.
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
    c.check("combine", *keys.STANDS)
    return methods.PromptTuning(
        c["prompt_length"], stands=keys.STANDS[c["combine"]]
    )
