"""AdapterHub's names of an adapter's tensors (`adapters` 1.3.0).

Each function returns the `TensorName`s of a method, given a `Place`.
"""

import typing

from tf_adapters import methods
from tf_adapters.interop.architectures import Architecture
from tf_adapters.interop.tensor_names import TensorName
from tf_adapters.interop.tensor_names import linear
from tf_adapters.interop.tensor_names import norm

BOTH = ("after_attention", "after_ffn")
_PLACES = {"top": BOTH[1:], "bottom": BOTH[:1], "both": BOTH}
PLACES_OF = {"houlsby": BOTH, "pfeiffer": BOTH[1:]}


class Place(typing.NamedTuple):
    """The name of an adapter in AdapterHub, and the adapter's encoder.

    Attributes:
        shape: `EncoderShape`.
        architecture: `Architecture`.
        adapter: The adapter's name.
    """

    shape: methods.EncoderShape
    architecture: Architecture
    adapter: str

    @property
    def encoder(self) -> str:
        """The encoder's name in a model with a head, such as `"bert."`."""
        return f"{self.architecture.prefix}."

    def module(self, block: int, name: str) -> str:
        """Returns the full name of a module, given its name in a block."""
        return f"{self.encoder}{self.architecture.module(block, name)}"

    def in_blocks(
        self,
        method: methods.Method,
        modules: dict[str, str],
        tensors: list[TensorName],
        parent: str = "",
    ) -> list[TensorName]:
        """Returns the `TensorName`s of tensors that each block has.

        Args:
            method: `Method`, which can leave out blocks.
            modules: Dict from our name of a position in a block, such as a
                slot's name, to AdapterHub's module.
            tensors: List of `TensorName`s, with names relative to the module.
            parent: Suffix to add to the modules' names, such as `".loras"`.
        """
        return [
            name.within(
                f"block_{block}_{ours}/",
                f"{self.module(block, theirs)}{parent}.{self.adapter}.",
            )
            for block, is_kept in enumerate(method.kept_blocks(self.shape))
            for ours, theirs in modules.items()
            for name in tensors
            if is_kept
        ]

    def in_slots(
        self,
        method: methods.Method,
        places: tuple[str, ...],
        tensors: list[TensorName],
    ) -> list[TensorName]:
        """Returns the `TensorName`s of tensors in the slots of each block.

        `places` are the names of the slots. See `in_blocks` for `tensors`.
        """
        modules = {place: self.architecture.slots[place] for place in places}
        return self.in_blocks(method, modules, tensors)

    def in_projections(
        self,
        method: methods.Method,
        projections: tuple[str, ...],
        tensors: list[TensorName],
    ) -> list[TensorName]:
        """Returns the `TensorName`s of tensors at projections of each block.

        See `in_blocks` for `tensors`.
        """
        modules = {p: self.architecture.projections[p] for p in projections}
        return self.in_blocks(method, modules, tensors, ".loras")


def _delta(down: str = "adapter_down.0") -> list[TensorName]:
    return [
        *linear("delta/down_", down),
        *linear("delta/up_", "adapter_up"),
    ]


def bottlenecks(
    method: methods.Houlsby | methods.Pfeiffer, place: Place
) -> list[TensorName]:
    """Returns the `TensorName`s of the methods `Houlsby` and `Pfeiffer`."""
    return place.in_slots(method, PLACES_OF[method.stacks_as], _delta())


def forms(method: methods.BottleneckForms, place: Place) -> list[TensorName]:
    """Returns the `TensorName`s of the method `BottleneckForms`."""
    tensors = _delta()
    if method.new_norm in ("before", "both"):
        # The norm is stored twice, because the down-projection contains it too.
        modules = ("adapter_norm_before", "adapter_down.0")
        tensors = _delta("adapter_down.1") + norm("norm_before_", *modules)
    if method.new_norm in ("after", "both"):
        tensors += norm("norm_after_", "adapter_norm_after")
    if method.learned_scaling != "none":
        tensors.append(TensorName("scaling", ("scaling",)))
    if method.use_gating:
        tensors += linear("gate/", "gate")
    return place.in_slots(method, _PLACES[method.position], tensors)


def compacter(method: methods.Compacter, place: Place) -> list[TensorName]:
    """Returns the `TensorName`s of the method `Compacter`."""
    parts = {"left": "W_left", "right": "W_right", "bias": "b"}
    sides = {"down": "adapter_down.0", "up": "adapter_up"}
    tensors = [
        TensorName(f"{side}_{mine}", (f"{module}.{part}",))
        for side, module in sides.items()
        for mine, part in parts.items()
    ]
    rule = f"{place.encoder}shared_parameters.{place.adapter}.phm_rule"
    return [
        *place.in_slots(method, PLACES_OF[method.placement], tensors),
        TensorName("shared_factors/factors", (rule,)),
    ]


def lora(method: methods.LoRA, place: Place) -> list[TensorName]:
    """Returns the `TensorName`s of the method `LoRA`."""
    tensors = [
        TensorName("down_kernel", ("lora_A",), "transposed"),
        TensorName("up_kernel", ("lora_B",), "transposed"),
        *(linear("gate/", "gate") if method.use_gating else ()),
    ]
    return place.in_projections(method, method.projections, tensors)


def ia3(method: methods.IA3, place: Place) -> list[TensorName]:
    """Returns the `TensorName`s of the method `IA3`."""
    tensors = [TensorName("vector", ("lora_B",), "column")]
    projections = ("key", "value", "ffn_up")
    return place.in_projections(method, projections, tensors)


def prefix(method: methods.PrefixTuning, place: Place) -> list[TensorName]:
    """Returns the `TensorName`s of the method `PrefixTuning`."""
    module, name = place.architecture.prefix_tuning
    # Every block stores a copy of the prefixes, even if it is left out.
    pools = [f"{place.encoder}prefix_tuning"]
    pools += [
        f"{place.module(block, module)}.pool"
        for block in range(place.shape.num_blocks)
    ]
    starts = [f"{p}.prefix_tunings.{place.adapter}.{name}." for p in pools]
    rows = method.prefix_length
    tensors = [TensorName("vectors", ("control_trans",), "flat", rows)]
    if method.hidden_units:
        tensors = [
            TensorName("embeddings", ("wte.weight",)),
            *linear("down_", "control_trans.0"),
            *linear("up_", "control_trans.2"),
        ]
    gates = linear("gate/", "") if method.use_gating else []
    return [
        *(tensor.within("shared_prefix/", *starts) for tensor in tensors),
        *place.in_blocks(
            method, {"keys_and_values": module}, gates, ".prefix_gates"
        ),
    ]


def prompt(method: methods.PromptTuning, place: Place) -> list[TensorName]:
    """Returns the `TensorName`s of the method `PromptTuning`."""
    module = f"{place.encoder}prompt_tuning.prompt_tunings.{place.adapter}"
    return [
        TensorName("prompt/vectors", (f"{module}.prompt_embedding.weight",))
    ]


def coupling(place: Place) -> list[TensorName]:
    """Returns the `TensorName`s of the method `Invertible`."""
    start = f"{place.encoder}invertible_adapters.{place.adapter}"
    return [
        name
        for ours, theirs in (("first", "F"), ("second", "G"))
        for side, index in (("down", 0), ("up", 2))
        for name in linear(
            f"invertible/{ours}/{side}_", f"{start}.{theirs}.{index}"
        )
    ]
