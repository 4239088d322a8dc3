"""Slots that combine several slots at one place, in sequence or averaged."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras

from tf_adapters.common.types import Tensor
from tf_adapters.layers.context import Context
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.slot_of_layers import SlotGivenLayers


@keras.saving.register_keras_serializable("tf_adapters")
class StackSlot(SlotGivenLayers):
    """Slot that applies several slots in sequence.

    Args:
        members: List of `Slot`s. Each returns a changed `x` and a dict of
            probes, that is, of tensors to inspect.
        **kwargs: See `keras.layers.Layer`.
    """

    arguments = ("members",)

    def __init__(self, members: Sequence[Slot], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.members = list(members)
        self.needs_all_tokens = any(slot.needs_all_tokens for slot in members)
        self.built = all(slot.built for slot in members)

    def call(
        self,
        x: Tensor,
        context: Context,
        training: bool | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        probes = {}
        for slot in self.members:
            x, found = slot(x, context=context, training=training)
            probes.update(found)
        return x, probes


@keras.saving.register_keras_serializable("tf_adapters")
class AverageSlot(StackSlot):
    """Slot that computes `own_weight x + sum_i w_i slot_i(x)`.

    Args:
        members: List of `Slot`s. Each returns a changed `x` and a dict of
            probes, which are dropped.
        weights_of_members: List with the weight `w_i` of each member.
        own_weight: Weight of `x` itself: the sum of the weights of adapters
            that have no slot at this place. Defaults to 0.
        **kwargs: See `keras.layers.Layer`.
    """

    arguments = ("members", "weights_of_members", "own_weight")

    def __init__(
        self,
        members: Sequence[Slot],
        weights_of_members: Sequence[float],
        own_weight: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(members, **kwargs)
        self.weights_of_members = list(weights_of_members)
        self.own_weight = own_weight

    def call(
        self,
        x: Tensor,
        context: Context,
        training: bool | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        total = self.own_weight * x
        for slot, weight in zip(
            self.members, self.weights_of_members, strict=True
        ):
            output, _ = slot(x, context=context, training=training)
            total = total + weight * output
        return total, {}


@keras.saving.register_keras_serializable("tf_adapters")
class AverageOfProjections(AverageSlot):
    """Computes the weighted sum of an `AverageSlot` for slots at a projection.

    Such slots return only the projection's output, without probes.
    """

    def call(
        self,
        x: Tensor,
        project: Callable[[Tensor], Tensor],
        context: Context,
        training: bool | None = None,
    ) -> Tensor:
        total = self.own_weight * project(x) if self.own_weight else 0.0
        for slot, weight in zip(
            self.members, self.weights_of_members, strict=True
        ):
            total = total + weight * slot(
                x, project=project, context=context, training=training
            )
        return total
