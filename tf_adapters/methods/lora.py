"""LoRA: Hu et al. 2022, arXiv:2106.09685, in the form of the PEFT library."""

import dataclasses
import math
import typing

import keras
from keras import ops

from tf_adapters.common.errors import UserError
from tf_adapters.layers.dense import dense
from tf_adapters.layers.gate import TextGate
from tf_adapters.layers.slot import Projection
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.stateless_seeds import dropout
from tf_adapters.methods.method import Method
from tf_adapters.methods.method import register


@register("lora")
@dataclasses.dataclass(frozen=True)
class LoRA(Method):
    """Adds to projections a product of rank `rank`.

    A projection `x W`, with `W` of shape `n x p`, becomes
    `x W + (alpha / rank) (x A) B`, which trains `rank (n + p)` weights; norms,
    biases and the rest stay frozen. A trained product costs nothing once it is
    folded (see `AdapterModel.fold`), as in an exported model.

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
            `alpha / rank` (UniPELT). Such a product cannot be folded.
        leave_out: Indices of blocks without a product.

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

    def folds(self, model):
        """Returns pairs of a kernel and its `LoRAUpdate`."""
        return [
            (block.kernels()[name][0], slot)
            for block in model.encoder.blocks
            for name, slot in block.slots.items()
            if isinstance(slot, LoRAUpdate) and not slot.use_gating
        ]


@keras.saving.register_keras_serializable("tf_adapters")
class LoRAUpdate(Slot):
    """Slot `x W + (alpha / rank) (x A) B` of a projection `x W`.

    `A` has shape `(inputs, rank)`, `B` `(rank, outputs)`: PEFT's `lora_A` and
    `lora_B`, transposed. `A` starts uniform in `+-1/sqrt(inputs)`, as PEFT's
    does, `B` at zero, so that nothing changes at the start (Hu et al. 2022,
    arXiv:2106.09685, section 4.1). `A B` itself, of the size of `W`, is never
    made in training, nor is its gradient.

    Args:
        inputs: Integer. Width of what the projection reads.
        outputs: Integer. Width of what it gives.
        rank: Integer, at least 1.
        alpha: Float.
        dropout_rate: Rate at which elements of `x` are dropped before `A` in
            training. Defaults to 0.
        use_gating: Whether a `TextGate` takes the place of `alpha / rank`, as
            in UniPELT and the `adapters` library. Defaults to `False`.

    Call arguments:
        x: `(batch, tokens, inputs)`.
        project: Function that computes `x W` and its bias.
        context: `Context`.

    Returns:
        `(batch, tokens, outputs)`.
    """

    def __init__(
        self,
        inputs,
        outputs,
        rank,
        alpha,
        dropout_rate=0.0,
        use_gating=False,
        **kwargs,
    ):
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

    def build(self, input_shape=None):
        limit = 1 / math.sqrt(self.inputs)
        self.down_kernel = self.add_weight(
            (self.inputs, self.rank),
            keras.initializers.RandomUniform(-limit, limit),
            name="down_kernel",
        )
        self.up_kernel = self.add_weight(
            (self.rank, self.outputs), "zeros", name="up_kernel"
        )
        if self.gate is not None and not self.gate.built:
            self.gate.build((None, None, self.inputs))

    @property
    def scale(self):
        """The factor of `A B`."""
        return self.alpha / self.rank

    def call(self, x, project=None, context=None, training=None):
        factor = self.scale
        if self.gate is not None:
            factor = self.gate(x, context.padding_mask)
        return project(x) + self.change(x, context.seeds, factor)

    def change(self, x, seeds=None, factor=None):
        """Returns `factor (x A) B`; the factor is `alpha / rank` by default."""
        factor = self.scale if factor is None else factor
        down = dense(dropout(x, self.dropout_rate, seeds), self.down_kernel)
        return dense(factor * down, self.up_kernel)

    def folded(self, kernel):
        """Returns `W + (alpha / rank) A B`, of the shape of the kernel `W`."""
        product = ops.matmul(
            ops.convert_to_tensor(self.down_kernel), self.up_kernel
        )
        change = ops.reshape(self.scale * product, kernel.shape)
        return kernel + ops.cast(change, kernel.dtype)
