"""A trained change of a kernel that is a product of two thin matrices."""

import math

import keras
from keras import ops

from tf_adapters.common.errors import UserError


class LoRAUpdate(keras.layers.Layer):
    """Gives a kernel `W` the value `W + (alpha / rank) A B`.

    `A` has shape `(inputs, rank)`, `B` `(rank, outputs)`: PEFT's `lora_A` and
    `lora_B`, transposed. `A` starts uniform in `+-1/sqrt(inputs)`, as PEFT's
    does, `B` at zero, so that nothing changes at the start (Hu et al. 2022,
    arXiv:2106.09685, section 4.1).

    Args:
        shape: Shape of the kernel, axes of the inputs first.
        rank: Integer, at least 1.
        alpha: Float.
        dropout_rate: Rate at which input neurons of `A` are dropped in
            training, the same ones for all tokens. Defaults to 0.
        num_input_axes: How many axes of the kernel are inputs. Defaults to 1.

    Call arguments:
        value: The kernel's own value.
        seeds: `StatelessSeeds` in training, else `None`.

    Returns:
        Tensor of the kernel's shape.
    """

    def __init__(
        self, shape, rank, alpha, dropout_rate=0.0, num_input_axes=1, **kwargs
    ):
        super().__init__(autocast=False, **kwargs)
        if rank < 1 or not 0 <= dropout_rate < 1:
            raise UserError(
                "A change of low rank needs rank >= 1 and a dropout rate in "
                f"[0, 1). Received: rank={rank}, dropout_rate={dropout_rate}"
            )
        self.shape = tuple(shape)
        self.rank = rank
        self.scale = alpha / rank
        self.dropout_rate = dropout_rate
        self.inputs = math.prod(self.shape[:num_input_axes])

    def build(self, input_shape=None):
        limit = 1 / math.sqrt(self.inputs)
        self.down_kernel = self.add_weight(
            (self.inputs, self.rank),
            keras.initializers.RandomUniform(-limit, limit),
            name="down_kernel",
        )
        outputs = math.prod(self.shape) // self.inputs
        self.up_kernel = self.add_weight(
            (self.rank, outputs), "zeros", name="up_kernel"
        )

    def call(self, value, seeds=None):
        down = ops.convert_to_tensor(self.down_kernel)
        if seeds is not None and self.dropout_rate:
            down = keras.random.dropout(
                down, self.dropout_rate, (self.inputs, 1), seed=seeds
            )
        change = self.scale * ops.matmul(down, self.up_kernel)
        return value + ops.cast(ops.reshape(change, self.shape), value.dtype)
