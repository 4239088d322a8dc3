"""A trained change of a projection that is a product of two thin matrices."""

import math

import keras
from keras import ops

from tf_adapters.common.errors import UserError
from tf_adapters.layers.dense import dense
from tf_adapters.layers.gate import TextGate
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.stateless_seeds import dropout


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

    def merged(self, kernel):
        """Returns `W + (alpha / rank) A B`, of the shape of the kernel `W`."""
        product = ops.matmul(
            ops.convert_to_tensor(self.down_kernel), self.up_kernel
        )
        change = ops.reshape(self.scale * product, kernel.shape)
        return kernel + ops.cast(change, kernel.dtype)
