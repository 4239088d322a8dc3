"""AdapterHub's names of an adapter's tensors (`adapters` 1.3.0)."""

from tf_adapters import methods
from tf_adapters.interop.tensor_names import TensorName
from tf_adapters.interop.tensor_names import linear


def tensor_names(method, shape, architecture, adapter):
    """Returns the `TensorName`s of all tensors that a method trains.

    Args:
        method: `Method` that AdapterHub has; see `write_method`.
        shape: `EncoderShape`.
        architecture: `Architecture`.
        adapter: The adapter's name.
    """
    if isinstance(method, methods.Union):
        return [
            name
            for part in method.parts
            for name in tensor_names(part, shape, architecture, adapter)
        ]
    if isinstance(method, methods.Invertible):
        return _coupling(architecture, adapter)
    if isinstance(method, methods.PromptTuning):
        start = f"{architecture.prefix}.prompt_tuning.prompt_tunings.{adapter}"
        return [
            TensorName("prompt/vectors", (f"{start}.prompt_embedding.weight",))
        ]
    of_block = {
        methods.Houlsby: _bottlenecks,
        methods.Pfeiffer: _bottlenecks,
        methods.BottleneckForms: _forms,
        methods.Compacter: _compacter,
        methods.LoRA: _lora,
        methods.IA3: _ia3,
        methods.PrefixTuning: _prefix_gate,
    }[type(method)]
    blocks = [i for i, k in enumerate(method.kept_blocks(shape)) if k]
    names = [
        name
        for block in blocks
        for name in of_block(method, block, architecture, adapter)
    ]
    if isinstance(method, methods.PrefixTuning):
        # Every block stores a copy of the prefixes, even if it is left out.
        names += _prefix(method, range(shape.num_blocks), architecture, adapter)
    if isinstance(method, methods.Compacter):
        start = f"{architecture.prefix}.shared_parameters.{adapter}"
        rule = TensorName("shared_factors/factors", (f"{start}.phm_rule",))
        names.append(rule)
    return names


def _module(architecture, block, name):
    return f"{architecture.prefix}.{architecture.module(block, name)}"


def _places(method, block, architecture, adapter):
    """Yields the prefixes of our names and of theirs, for each slot."""
    both = ("after_attention", "after_ffn")
    places = {
        methods.Houlsby: lambda: both,
        methods.Pfeiffer: lambda: both[1:],
        methods.Compacter: lambda: (
            both if method.placement == "houlsby" else both[1:]
        ),
        methods.BottleneckForms: lambda: {
            "top": both[1:],
            "bottom": both[:1],
            "both": both,
        }[method.position],
    }[type(method)]()
    for place in places:
        start = _module(architecture, block, architecture.slots[place])
        yield f"block_{block}_{place}/", f"{start}.{adapter}"


def _bottlenecks(method, block, architecture, adapter, down="adapter_down.0"):
    names = []
    for ours, theirs in _places(method, block, architecture, adapter):
        names += linear(f"{ours}delta/down_", f"{theirs}.{down}")
        names += linear(f"{ours}delta/up_", f"{theirs}.adapter_up")
    return names


def _forms(method, block, architecture, adapter):
    has_norm = {
        place: method.new_norm in (place, "both")
        for place in ("before", "after")
    }
    down = "adapter_down.1" if has_norm["before"] else "adapter_down.0"
    names = _bottlenecks(method, block, architecture, adapter, down)
    for ours, theirs in _places(method, block, architecture, adapter):
        for place, has in has_norm.items():
            modules = [f"{theirs}.adapter_norm_{place}"]
            if place == "before":
                # Stored twice: this norm also begins the down-projection.
                modules.append(f"{theirs}.adapter_down.0")
            names += _norm(f"{ours}norm_{place}_", modules) if has else []
        if method.learned_scaling != "none":
            names.append(TensorName(f"{ours}scaling", (f"{theirs}.scaling",)))
        if method.use_gating:
            names += linear(f"{ours}gate/", f"{theirs}.gate")
    return names


def _norm(ours, modules):
    return [
        TensorName(f"{ours}{mine}", tuple(f"{m}.{theirs}" for m in modules))
        for mine, theirs in (("gamma", "weight"), ("beta", "bias"))
    ]


def _compacter(method, block, architecture, adapter):
    parts = {"left": "W_left", "right": "W_right", "bias": "b"}
    sides = {"down": "adapter_down.0", "up": "adapter_up"}
    return [
        TensorName(f"{ours}{side}_{mine}", (f"{theirs}.{module}.{part}",))
        for ours, theirs in _places(method, block, architecture, adapter)
        for side, module in sides.items()
        for mine, part in parts.items()
    ]


def _loras(method, block, architecture, adapter, projections):
    for name in projections:
        module = _module(architecture, block, architecture.projections[name])
        yield f"block_{block}_{name}/", f"{module}.loras.{adapter}"


def _lora(method, *where):
    names = []
    for ours, theirs in _loras(method, *where, method.projections):
        names += [
            TensorName(
                f"{ours}down_kernel", (f"{theirs}.lora_A",), "transposed"
            ),
            TensorName(f"{ours}up_kernel", (f"{theirs}.lora_B",), "transposed"),
        ]
        if method.use_gating:
            names += linear(f"{ours}gate/", f"{theirs}.gate")
    return names


def _ia3(method, *where):
    return [
        TensorName(f"{ours}vector", (f"{theirs}.lora_B",), "column")
        for ours, theirs in _loras(method, *where, ("key", "value", "ffn_up"))
    ]


def _prefix_gate(method, block, architecture, adapter):
    if not method.use_gating:
        return []
    module = _module(architecture, block, architecture.prefix_tuning[0])
    ours = f"block_{block}_keys_and_values/gate/"
    return linear(ours, f"{module}.prefix_gates.{adapter}")


def _prefix(method, blocks, architecture, adapter):
    module, name = architecture.prefix_tuning
    pools = [f"{architecture.prefix}.prefix_tuning"]
    pools += [f"{_module(architecture, b, module)}.pool" for b in blocks]
    starts = [f"{pool}.prefix_tunings.{adapter}.{name}" for pool in pools]

    def named(ours, theirs, layout="same", rows=0):
        copies = tuple(f"{start}.{theirs}" for start in starts)
        return TensorName(f"shared_prefix/{ours}", copies, layout, rows)

    if not method.hidden_units:
        rows = method.prefix_length
        return [named("vectors", "control_trans", "flat", rows)]
    names = [named("embeddings", "wte.weight")]
    for side, index in (("down", 0), ("up", 2)):
        module = f"control_trans.{index}"
        names.append(named(f"{side}_kernel", f"{module}.weight", "transposed"))
        names.append(named(f"{side}_bias", f"{module}.bias"))
    return names


def _coupling(architecture, adapter):
    start = f"{architecture.prefix}.invertible_adapters.{adapter}"
    return [
        name
        for ours, theirs in (("first", "F"), ("second", "G"))
        for side, index in (("down", 0), ("up", 2))
        for name in linear(
            f"invertible/{ours}/{side}_", f"{start}.{theirs}.{index}"
        )
    ]
