"""AdapterFusion: Pfeiffer et al. 2021, arXiv:2005.00247."""

import dataclasses
import typing
from typing import TYPE_CHECKING
from typing import Any

import keras

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers import bottleneck_reads
from tf_adapters.layers.activations import Activation
from tf_adapters.layers.adapter_fusion import AdapterFusion
from tf_adapters.layers.adapter_fusion import FusionStart
from tf_adapters.layers.adapter_fusion import FusionValue
from tf_adapters.layers.context import Context
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.slot_of_layers import SlotOfLayers
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.registry import register
from tf_adapters.methods.support import bottleneck_slots

if TYPE_CHECKING:
    from tf_adapters.layers.stateless_seeds import StatelessSeeds


@register("fusion")
@dataclasses.dataclass(frozen=True)
class Fusion(Method):
    """Combines frozen adapters of several tasks by attention, in each block.

    The combined adapters are called members. At each place, the fusion trains
    `3 d^2 + d` weights for encoder width `d` (section 3.2).

    Attributes:
        adapters: Folders of the members, or their names once the model is
            built. `tf_adapters.fuse` loads the members and sets the attributes
            that depend on them.
        placement: Method of the members: `"pfeiffer"` (default, section 2.2)
            or `"houlsby"`.
        units: Bottleneck width `m` of the widest member.
        activation: Activation of the members.
        value: `"dynamic"` (default) or `"static"`; see `AdapterFusion`.
        value_start: Initial elements of the matrix V off its diagonal; those on
            the diagonal are 1. `"random"` (default): normal with standard
            deviation 1e-6, as in section 4.1. `"constant"`: 1e-6, as in the
            authors' library.
        value_pull: Weight of the penalty `sum (V - I)^2`. 0.01 in the authors'
            library; the paper gives no number (section 4.1).
        subset: Number of members that are drawn at random in each training
            step, the same ones in all blocks. `None` (default) uses all.
            Evaluation always uses all (section 8.2).
        leave_out: Indices of blocks without members and fusion.

    Examples:
        >>> method = methods.Pfeiffer()
        >>> one = tf_adapters.adapt(encoder, method, head, name="one")
        >>> two = tf_adapters.adapt(encoder, method, head, name="two")
        >>> static = methods.Fusion(value="static", value_pull=0.0)
        >>> model = tf_adapters.fuse(encoder, static, head, adapters=[one, two])
        >>> model.method.adapters
        ('one', 'two')
    """

    adapters: tuple[str, ...] = ()
    placement: typing.Literal["pfeiffer", "houlsby"] = "pfeiffer"
    units: int = 64
    activation: Activation = "relu"
    value: FusionValue = "dynamic"
    value_start: FusionStart = "random"
    value_pull: float = 0.01
    subset: int | None = None
    leave_out: tuple[int, ...] = ()

    not_in_bank = "It combines adapters of its own."

    def make_slots(self, shape: EncoderShape) -> list[dict[str, Slot]]:
        """Returns each block's slots: a list of dicts from place to slot."""
        self._check_members()
        places, reads = bottleneck_slots.PLACEMENTS[self.placement]

        def make(place: str, name: str) -> "FusionSlot":
            return FusionSlot(
                reads,
                len(self.adapters),
                self.units,
                self.activation,
                self.value,
                self.subset,
                self.value_start,
                name=name,
            )

        return self.fill_places(shape, places, make)

    def _check_members(self) -> None:
        if not self.adapters:
            raise UserError(
                "A fusion needs trained adapters. Use `tf_adapters.fuse("
                "encoder, method, head)`, which loads them."
            )
        if self.subset is None or 1 <= self.subset <= len(self.adapters):
            return
        raise UserError(
            "Invalid value for `subset`: expected one of 1 to "
            f"{len(self.adapters)}, the number of adapters. Received: "
            f"subset={self.subset}"
        )

    def penalty(self, model: Any) -> Tensor:
        """Returns `value_pull` times `sum (V - I)^2`, summed over all slots."""
        pulls = [
            slot.fusion.pull_to_identity()
            for block in model.slots
            for slot in block.values()
        ]
        return self.value_pull * sum(pulls)


@keras.saving.register_keras_serializable("tf_adapters")
class FusionSlot(SlotOfLayers):
    """Slot that computes `x + sum_n p_n V z_n`.

    `z_n` is the output of member `n`, `p_n` is its attention weight, and `V` is
    a trained matrix or the identity. The slot reports `p` as a probe.

    Args:
        reads: Input of the members and the query, one of
            `bottleneck_reads.Reads`.
        num_adapters: See `AdapterFusion`.
        units: See `AdapterFusion`.
        activation: See `AdapterFusion`.
        value: See `AdapterFusion`.
        subset: See `Fusion`.
        value_start: See `Fusion`.
        **kwargs: See `keras.layers.Layer`.

    Returns:
        The sum, of the shape of `x`, and `{"fusion_weights": p}` with `p` of
        shape `(batch, tokens, num_adapters)`, or `(batch, tokens, subset)` in
        training.
    """

    def __init__(
        self,
        reads: str,
        num_adapters: int,
        units: int,
        activation: str,
        value: str,
        subset: int | None = None,
        value_start: str = "constant",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.reads = reads
        self.subset = subset
        self.fusion = AdapterFusion(
            num_adapters, units, activation, value, value_start, name="fusion"
        )

    def call(
        self,
        x: Tensor,
        context: Context,
        training: bool | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        chosen = None
        if self.subset is not None and context.seeds is not None:
            chosen = self._draw(context.seeds)
        fused, weights = self.fusion(
            bottleneck_reads.read(self.reads, x, context),
            chosen=chosen,
            training=training,
        )
        return x + fused, {"fusion_weights": weights}

    def _draw(self, seeds: "StatelessSeeds") -> Tensor:
        """Returns the indices of `subset` random members.

        All slots draw the same members in a step.
        """
        order = keras.random.uniform(
            (self.fusion.num_adapters,), seed=seeds.of_step()
        )
        _, members = keras.ops.top_k(order, self.subset)
        return members
