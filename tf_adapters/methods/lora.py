"""LoRA: Hu et al. 2022, arXiv:2106.09685, in the form of the PEFT library."""

import dataclasses
import typing

from tf_adapters.common.errors import UserError
from tf_adapters.layers.lora import LoRAUpdate
from tf_adapters.layers.slot import Projection
from tf_adapters.methods.method import Method
from tf_adapters.methods.method import register


@register("lora")
@dataclasses.dataclass(frozen=True)
class LoRA(Method):
    """Adds to projections a product of rank `rank`.

    A projection `x W`, with `W` of shape `n x p`, becomes
    `x W + (alpha / rank) (x A) B`, which trains `rank (n + p)` weights; norms,
    biases and the rest stay frozen. A trained product costs nothing once it is
    merged (see `AdapterModel.merge`), as in an exported model.

    Attributes:
        rank: 8 in PEFT.
        alpha: 8 in PEFT.
        dropout: Rate at which elements of `x` are dropped before `A`; 0 in
            PEFT.
        projections: Which projections change: attention's `"query"`, `"key"`,
            `"value"`, `"output"`, and the feed-forward network's `"ffn_up"`
            and `"ffn_down"`. Query and value in the paper (section 5.1) and in
            PEFT.
        use_gating: Whether a gate for each text takes the place of
            `alpha / rank` (UniPELT). Such a product cannot be merged.
        leave_out: Indices of blocks without a product.

    Examples:
        >>> method = methods.LoRA(rank=8, alpha=16)
        >>> model = tf_adapters.adapt(encoder, method, head)
        >>> model.merge()  # It costs nothing now.
        >>> model.unmerge()
    """

    rank: int = 8
    alpha: float = 8.0
    dropout: float = 0.0
    projections: tuple[Projection, ...] = ("query", "value")
    use_gating: bool = False
    leave_out: tuple[int, ...] = ()

    def __post_init__(self):
        super().__post_init__()
        if not self.projections:
            raise UserError(
                "`projections` must name one or more of "
                f"{', '.join(typing.get_args(Projection))}."
            )

    def make_slots(self, shape):
        """Returns one dict of slots for each block."""

        def make(projection, name):
            return LoRAUpdate(
                *shape.of_projection(projection),
                self.rank,
                self.alpha,
                self.dropout,
                self.use_gating,
                name=name,
            )

        return self.fill_places(shape, self.projections, make)

    def merges(self, model):
        """Returns pairs of a kernel and its `LoRAUpdate`."""
        return [
            (block.kernels()[name][0], slot)
            for block in model.encoder.blocks
            for name, slot in block.slots.items()
            if isinstance(slot, LoRAUpdate) and not slot.use_gating
        ]
