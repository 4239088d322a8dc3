"""Converts methods to AdapterHub's configurations."""

from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.interop.adapterhub import keys
from tf_adapters.methods.support import bottleneck_slots


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
    return AdapterError(f"AdapterHub's format cannot store {what}.{advice}")


def _write_union(method, width):
    parts = {type(part): part for part in method.parts}
    if len(parts) < len(method.parts):
        raise _refusal("two parts of one kind in a union")
    coupling = parts.pop(methods.Invertible, None)
    configs = [write_method(part, width) for part in parts.values()]
    if coupling is not None:
        bottleneck = next((c for c in configs if "mh_adapter" in c), None)
        shared = bottleneck and bottleneck["non_linearity"]
        if shared != keys.NON_LINEARITIES[coupling.activation]:
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
    units = bottleneck_slots.width_of_bottleneck(method, width)
    if width % units == 0:
        return width // units
    # The library truncates width / factor; adding 0.5 makes it `units` again.
    return width / (units + 0.5)


def _write_bottleneck(method, width):
    is_pfeiffer = isinstance(method, methods.Pfeiffer)
    return {
        **keys.BOTTLENECK,
        "mh_adapter": not is_pfeiffer,
        "original_ln_before": is_pfeiffer,
        "non_linearity": keys.NON_LINEARITIES[method.activation],
        "reduction_factor": _reduction_factor(method, width),
        "leave_out": list(method.leave_out),
    }


def _write_form(method, width):
    if method.num_hidden_layers != 1 or method.combine != "add":
        raise _refusal("more hidden layers, or products, in an adapter")
    scalings = {"none": float(method.scaling), "scalar": "learned"}
    residuals = {ours: theirs for theirs, ours in keys.RESIDUALS.items()}
    return {
        **keys.BOTTLENECK,
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
        "non_linearity": keys.NON_LINEARITIES[method.activation],
        "reduction_factor": _reduction_factor(method, width),
        "leave_out": list(method.leave_out),
    }


def _write_compacter(method, width):
    is_pfeiffer = method.placement == "pfeiffer"
    return {
        **keys.BOTTLENECK,
        "mh_adapter": not is_pfeiffer,
        "original_ln_before": is_pfeiffer,
        "phm_layer": True,
        "phm_dim": method.order,
        "phm_rank": method.rank,
        "non_linearity": keys.NON_LINEARITIES[method.activation],
        "reduction_factor": _reduction_factor(method, width),
        "leave_out": list(method.leave_out),
    }


def _write_lora(method, width):
    letters = {ours: letter for letter, ours in keys.ATTENTION.items()}
    if "output" in method.projections:
        raise _refusal(
            "LoRA on attention's output projection",
            " PEFT's has: --format=peft.",
        )
    attention = [letters[p] for p in method.projections if p in letters]
    return {
        **keys.LORA,
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


def _check_form(method, what):
    if method.form != "adapterhub":
        raise _refusal(
            f"PEFT's form of {what}",
            " Export it with --format=peft, or train with "
            "method.form=adapterhub.",
        )


def _write_ia3(method, width):
    _check_form(method, "(IA)^3, another function")
    return {
        **keys.LORA,
        "r": 1,
        "alpha": 1,
        "attn_matrices": ["k", "v"],
        "composition_mode": "scale",
        "init_weights": "ia3",
        "intermediate_lora": True,
        "leave_out": list(method.leave_out),
    }


def _write_prefix(method, width):
    _check_form(method, "prefix tuning")
    return {
        **keys.PREFIX,
        "prefix_length": method.prefix_length,
        "flat": not method.hidden_units,
        "bottleneck_size": method.hidden_units or 512,
        "non_linearity": keys.NON_LINEARITIES[method.activation],
        "dropout": float(method.dropout),
        "use_gating": method.use_gating,
        "leave_out": list(method.leave_out),
    }


def _write_prompt(method, width):
    _check_form(method, "prompt tuning")
    combine = {ours: theirs for theirs, ours in keys.STANDS.items()}
    return {
        **keys.PROMPT,
        "prompt_length": method.prompt_length,
        "combine": combine[method.stands],
    }
