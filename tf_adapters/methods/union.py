"""Unions of several methods: MAM, UniPELT, language adapters."""

import dataclasses
import itertools
import typing
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor
from tf_adapters.layers.slot import Slot
from tf_adapters.methods.baselines import HeadOnly
from tf_adapters.methods.invertible import Invertible
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.registry import register
from tf_adapters.methods.support.gating import Gating

if TYPE_CHECKING:
    import keras
    import numpy as np


@register("union")
@dataclasses.dataclass(frozen=True)
class Union(Method):
    """Applies several methods to the same encoder.

    Two parts cannot have a slot at the same place of a block, nor one before
    and one after the norm of the same sublayer.

    Attributes:
        parts: Tuple of methods. MAM (He et al. 2022, arXiv:2110.04366) combines
            prefix tuning and a parallel bottleneck. UniPELT (Mao et al. 2022,
            arXiv:2110.07577) combines prefix tuning, a bottleneck and LoRA,
            each with a gate. The presets `mam` and `unipelt` have the papers'
            settings.

    Examples:
        >>> mam = methods.Union(
        ...     (
        ...         methods.PrefixTuning(prefix_length=5),
        ...         methods.BottleneckForms(
        ...             parallel=True, pretrained_norm="after", scaling=4.0
        ...         ),
        ...     )
        ... )
        >>> tuple(tf_adapters.adapt(encoder, mam, head)(features).shape)
        (2, 2)
    """

    parts: typing.Any = ()

    def __post_init__(self) -> None:
        if not isinstance(self.parts, list | tuple):
            raise UserError(
                "The parts of a union are a tuple of methods. Received: "
                f"{shown(self.parts)}. Put a single method in brackets: "
                "(method,)."
            )
        object.__setattr__(self, "parts", tuple(self.parts))
        for part in self.parts:
            alone = isinstance(part, Method) and not (
                part.adapters or part.tasks or part.gating.last_phase_step(1)
            )
            if not alone:
                raise UserError(
                    "The parts of a union must be methods for one task, "
                    f"without phases. Received: {shown(part)}"
                )
        self._check_gates_are_drawn()

    def _check_gates_are_drawn(self) -> None:
        parts: Any = self.parts
        gated = any(getattr(part, "l0_lambda", None) for part in parts)
        if gated and any(getattr(part, "mixout", 0) for part in parts):
            raise UserError(
                "Mixout turns off the random numbers of slots together with "
                "dropout, so that the gates of another part would not be drawn "
                "in training. Leave out `mixout` or `l0_lambda`."
            )

    @property
    def position_offset(self) -> int:
        """The total number of positions by which the parts shift the text."""
        return sum(part.position_offset for part in self.parts)

    def make_slots(self, shape: EncoderShape) -> list[dict[str, Slot]]:
        """Returns each block's slots: a list of dicts from place to slot.

        Raises:
            UserError: If two slots have the same place in a block, or the same
                name, or if a part has no dict for each block.
        """
        of_parts = [_slots_of(part, shape) for part in self.parts]
        joined = [
            _joined(*(slots[block] for slots in of_parts))
            for block in range(shape.num_blocks)
        ]
        _check_names(joined)
        return joined

    def make_embedding_slots(self, shape: EncoderShape) -> dict[str, Slot]:
        """Returns the slots of all parts at the embeddings, keyed by place."""
        return _joined(*(p.make_embedding_slots(shape) for p in self.parts))

    def trainable_encoder_variables(
        self, encoder: Any
    ) -> "list[keras.Variable]":
        """Returns the encoder's variables that at least one part trains."""
        found = self._of_all("trainable_encoder_variables", encoder)
        return list({id(variable): variable for variable in found}.values())

    def reparameterize(
        self, model: Any
    ) -> "list[tuple[keras.Variable, keras.layers.Layer]]":
        """Returns pairs of a variable and the layer that replaces it.

        The list has the pairs of all parts.
        """
        return self._of_all("reparameterize", model)

    def folds(self, model: Any) -> "list[tuple[keras.Variable, Slot]]":
        """Returns pairs of a kernel and the slot that can be folded into it.

        The list has the pairs of all parts, each only once: `LoRA.folds`
        returns the slots of all LoRAs in the model.
        """
        pairs = self._of_all("folds", model)
        return list(
            {(id(k), id(slot)): (k, slot) for k, slot in pairs}.values()
        )

    def report(self, model: Any) -> dict[str, Any]:
        """Returns the numbers that the parts report, all in one dict."""
        reports = (part.report(model) for part in self.parts)
        return {
            key: value for report in reports for key, value in report.items()
        }

    @property
    def gating(self) -> "UnionGating":
        """A `Gating` that combines the `Gating`s of all parts."""
        return UnionGating([part.gating for part in self.parts])

    def penalty(self, model: Any) -> Tensor:
        """Returns the sum of the parts' penalties."""
        return sum(part.penalty(model) for part in self.parts)

    def _of_all(self, name: str, argument: Any) -> list[Any]:
        found = (getattr(part, name)(argument) for part in self.parts)
        return list(itertools.chain(*found))


def _slots_of(part: Method, shape: EncoderShape) -> list[dict[str, Slot]]:
    slots = part.make_slots(shape)
    if not isinstance(slots, list | tuple) or len(slots) != shape.num_blocks:
        raise UserError(
            f"`make_slots` of {type(part).__name__} must return a list with a "
            f"dict of slots for each of the {shape.num_blocks} blocks. "
            f"Received: {shown(slots)}"
        )
    return slots


def _joined(*found: dict[str, Slot]) -> dict[str, Slot]:
    joined = {}
    for slots in found:
        for place, slot in slots.items():
            if place in joined:
                raise UserError(
                    f"Two parts of a union are attached at `{place}`. Give "
                    "each its own position, or leave one of them out."
                )
            joined[place] = slot
    return joined


def _check_names(blocks: list[dict[str, Slot]]) -> None:
    # Weights are stored under the names of their slots. A slot has the same
    # name before and after the norm of a sublayer, which are two places.
    found = {}
    for slot in itertools.chain(*(slots.values() for slots in blocks)):
        if found.setdefault(slot.name, slot) is not slot:
            raise UserError(
                f"Two parts of a union have slots of the same name, "
                f"`{slot.name}`, so that their weights cannot be told apart. "
                "Give each its own position, or leave one of them out."
            )


class UnionGating(Gating):
    """Combines several `Gating`s, each of which handles its own weights.

    Args:
        parts: List with the `Gating` of each part of a union.
    """

    def __init__(self, parts: list[Gating]) -> None:
        self.parts = parts

    def reopen(self, model: Any) -> None:
        for part in self.parts:
            part.reopen(model)

    def pack(self, tensors: "dict[str, np.ndarray]") -> "dict[str, np.ndarray]":
        for part in self.parts:
            tensors = part.pack(tensors)
        return tensors

    def unpack(
        self,
        tensors: "dict[str, np.ndarray]",
        shapes: dict[str, tuple[int, ...]],
    ) -> "dict[str, np.ndarray]":
        for part in reversed(self.parts):
            tensors = part.unpack(tensors, shapes)
        return tensors


def without_map(method: Method) -> Method:
    """Returns a method without its invertible adapter, if it has one.

    If nothing else remains, returns `HeadOnly()`.
    """
    parts = method.parts if isinstance(method, Union) else (method,)
    kept = tuple(part for part in parts if not isinstance(part, Invertible))
    if len(kept) == len(parts):
        return method
    if not kept:
        return HeadOnly()
    return kept[0] if len(kept) == 1 else Union(kept)
