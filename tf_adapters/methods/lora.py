"""LoRA: Hu et al. 2022, arXiv:2106.09685, as in the PEFT library."""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import math
import typing
from typing import Any

import keras
from keras import ops

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers import initializers
from tf_adapters.layers.banks.bank_layer import Part
from tf_adapters.layers.banks.projections import BankLowRank
from tf_adapters.layers.context import Context
from tf_adapters.layers.dense import dense
from tf_adapters.layers.gate import TextGate
from tf_adapters.layers.slot import Projection
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.stateless_seeds import StatelessSeeds
from tf_adapters.layers.stateless_seeds import dropout
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.registry import register


@register("lora")
@dataclasses.dataclass(frozen=True)
class LoRA(Method):
    """Adds a trained matrix of low rank to projections.

    A projection `x W` with `W` of shape `(n, p)` becomes
    `x W + (alpha / rank) (x A) B`, which trains `rank (n + p)` weights. The
    encoder is frozen. After training, `AdapterModel.fold` adds
    `(alpha / rank) A B` to `W` itself, as export does. LoRA then has no cost.

    Attributes:
        rank: Rank of `A B`; 8 in PEFT.
        alpha: Numerator of the factor `alpha / rank` of `A B`; 8 in PEFT.
        dropout: Rate at which elements of `x` are dropped before `A`; 0 in
            PEFT.
        projections: Projections to change: attention's `"query"`, `"key"`,
            `"value"` and `"output"`, and the feed-forward network's `"ffn_up"`
            and `"ffn_down"`. The paper (section 5.1) and PEFT use query and
            value.
        use_gating: Whether a gate for each text replaces `alpha / rank`
            (UniPELT). With a gate, `A B` cannot be folded into `W`.
        leave_out: Indices of blocks without LoRA.

    Examples:
        >>> method = methods.LoRA(rank=8, alpha=16)
        >>> model = tf_adapters.adapt(encoder, method, head)
        >>> model.fold()  # It costs nothing now.
        >>> model.unfold()
    """

    rank: int = 8
    alpha: float = 8.0
    dropout: float = 0.0
    projections: tuple[Projection, ...] = ("query", "value")
    use_gating: bool = False
    leave_out: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.projections:
            raise UserError(
                "`projections` must name one or more of "
                f"{', '.join(typing.get_args(Projection))}."
            )

    def make_slots(self, shape: EncoderShape) -> list[dict[str, Slot]]:
        """Returns each block's slots: a list of dicts from place to slot."""

        def make(projection: str, name: str) -> "LoRAUpdate":
            return LoRAUpdate(
                *shape.of_projection(projection),
                self.rank,
                self.alpha,
                self.dropout,
                self.use_gating,
                name=name,
            )

        return self.fill_places(shape, self.projections, make)

    def folds(self, model: Any) -> list[tuple[keras.Variable, Slot]]:
        """Returns pairs of a kernel and the `LoRAUpdate` of its projection.

        Updates with a gate cannot be folded, so they are not returned.
        """
        return [
            (block.kernels()[name][0], slot)
            for block in model.encoder.blocks
            for name, slot in block.slots.items()
            if isinstance(slot, LoRAUpdate) and not slot.use_gating
        ]


@keras.saving.register_keras_serializable("tf_adapters")
class LoRAUpdate(Slot):
    """Slot that computes `x W + (alpha / rank) (x A) B` for a projection `x W`.

    `A` has shape `(inputs, rank)` and `B` has shape `(rank, outputs)`. They are
    PEFT's `lora_A` and `lora_B`, transposed. `A` starts uniform in
    `+-1/sqrt(inputs)`, as in PEFT, and `B` starts at zero, so the projection is
    unchanged at first (Hu et al. 2022, arXiv:2106.09685, section 4.1).
    `A B` is as large as `W`, so training does not compute `A B` or its
    gradient.

    Args:
        inputs: Integer. Input width of the projection.
        outputs: Integer. Output width of the projection.
        rank: Integer, at least 1. Rank of `A B`.
        alpha: Float. Numerator of the factor `alpha / rank` of `A B`.
        dropout_rate: Rate at which elements of `x` are dropped before `A` in
            training. Defaults to 0.
        use_gating: Whether a `TextGate` replaces `alpha / rank`, as in UniPELT
            and the `adapters` library. Defaults to `False`.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        rank: int,
        alpha: float,
        dropout_rate: float = 0.0,
        use_gating: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if rank < 1 or not 0 <= dropout_rate < 1:
            raise UserError(
                "A change of low rank needs rank >= 1 and a dropout rate in "
                f"[0, 1). Received: rank={rank}, dropout_rate={dropout_rate}"
            )
        self.inputs = inputs
        self.outputs = outputs
        self.rank = rank
        self.alpha = alpha
        self.dropout_rate = dropout_rate
        self.use_gating = self.needs_all_tokens = use_gating
        self.gate = TextGate(name="gate") if use_gating else None

    def build(self, input_shape: Sequence[Any] | None = None) -> None:
        limit = 1 / math.sqrt(self.inputs)
        self.down_kernel = self.add_weight(
            (self.inputs, self.rank),
            initializers.random_uniform(limit),
            name="down_kernel",
        )
        self.up_kernel = self.add_weight(
            (self.rank, self.outputs), "zeros", name="up_kernel"
        )
        if self.gate is not None and not self.gate.built:
            self.gate.build((None, None, self.inputs))

    @property
    def scale(self) -> float:
        """The factor `alpha / rank` of `A B`."""
        return self.alpha / self.rank

    def call(
        self,
        x: Tensor,
        project: Callable[[Tensor], Tensor],
        context: Context,
        training: bool | None = None,
    ) -> Tensor:
        factor = self.scale
        if self.gate is not None:
            factor = self.gate(x, context.padding_mask)
        return project(x) + self.change(x, context.seeds, factor)

    def change(
        self,
        x: Tensor,
        seeds: StatelessSeeds | None = None,
        factor: float | Tensor | None = None,
    ) -> Tensor:
        """Returns `factor (x A) B`, with dropout on `x` if `seeds` are given.

        `factor` defaults to `alpha / rank`.
        """
        factor = self.scale if factor is None else factor
        down = dense(dropout(x, self.dropout_rate, seeds), self.down_kernel)
        return dense(factor * down, self.up_kernel)

    def bank_parts(self) -> list[Part]:
        """Returns `A` and `(alpha / rank) B` as a bank stores them.

        The result is a list of one `Part`.

        Raises:
            UserError: If a gate replaces `alpha / rank`.
        """
        if self.use_gating:
            raise UserError("A bank has no gates. Received: use_gating=True.")
        arrays = {
            "down_kernel": self.down_kernel,
            "up_kernel": self.up_kernel * self.scale,
        }
        return [BankLowRank.part(arrays)]

    def folded(self, kernel: Tensor) -> Tensor:
        """Returns `W + (alpha / rank) A B`, of the shape of the kernel `W`."""
        product = ops.matmul(
            ops.convert_to_tensor(self.down_kernel), self.up_kernel
        )
        change = ops.reshape(self.scale * product, kernel.shape)
        return kernel + ops.cast(change, kernel.dtype)
