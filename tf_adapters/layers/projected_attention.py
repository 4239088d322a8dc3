"""The parts of a projected attention layer: Stickland and Murray 2019."""

import keras
from keras import ops

from tf_adapters.common.errors import UserError
from tf_adapters.layers.attention import attention
from tf_adapters.layers.bottleneck import Bottleneck
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer


@keras.saving.register_keras_serializable("tf_adapters")
class Projections(Bottleneck):
    """Maps token vectors to a small width and back; blocks may share it.

    Holds `2dm + d + m` weights for vectors of width `d`.

    Args:
        units: Integer. The small width `m`.
        init_stddev: Positive float. Both kernels start normal with it, both
            biases at zero.
    """

    def __init__(self, units, init_stddev=0.02, **kwargs):
        super().__init__(units, "linear", "normal", init_stddev, **kwargs)

    def down(self, x):
        """Returns `(..., m)` for `(..., d)`."""
        return dense(x, self.down_kernel, self.down_bias)

    def up(self, x, activation=None):
        """Returns `(..., d)` for `(..., m)`."""
        return dense(x, self.up_kernel, self.up_bias, activation)


@keras.saving.register_keras_serializable("tf_adapters")
class SmallAttention(Float32Layer):
    """Self-attention with several heads and no projection of its output.

    Holds `3 m^2 + 2 m` weights. There is no bias of the keys: it would shift
    all logits of a query alike and cancel in the softmax.

    Args:
        units: Integer. Width `m` of its vectors.
        num_heads: Integer that divides `units`.
        dropout_rate: Dropout rate of the attention weights in training.
        init_stddev: Positive float. All kernels start normal with it, biases
            at zero.

    Call arguments:
        queries: `(batch, queries, m)`: the positions that are computed.
        tokens: `(batch, tokens, m)`: those that are attended to.
        padding_mask: `(batch, tokens)`, 0 at padding.
        seeds: `StatelessSeeds` in training, else `None`.

    Returns:
        Tensor of the shape of `queries`.

    Raises:
        UserError: If `num_heads` does not divide `units`.
    """

    def __init__(
        self, units, num_heads, dropout_rate=0.0, init_stddev=0.02, **kwargs
    ):
        super().__init__(**kwargs)
        if num_heads < 1 or units % num_heads:
            raise UserError(
                "Invalid value for argument `num_heads`: expected a number of "
                f"heads that divides units={units}. Received: "
                f"num_heads={num_heads}"
            )
        self.units = units
        self.num_heads = num_heads
        self.dropout_rate = dropout_rate
        self.init_stddev = init_stddev

    def build(self, input_shape=None):
        for name in ("query", "key", "value"):
            kernel = self.add_weight(
                (self.units, self.units),
                keras.initializers.RandomNormal(stddev=self.init_stddev),
                name=f"{name}_kernel",
            )
            setattr(self, f"{name}_kernel", kernel)
        self.query_bias = self.add_weight(
            (self.units,), "zeros", name="query_bias"
        )
        self.value_bias = self.add_weight(
            (self.units,), "zeros", name="value_bias"
        )

    def call(self, queries, tokens, padding_mask, seeds=None):
        return attention(
            dense(queries, self.query_kernel, self.query_bias),
            dense(tokens, self.key_kernel),
            dense(tokens, self.value_kernel, self.value_bias),
            self.num_heads,
            ops.convert_to_tensor(padding_mask),
            self.dropout_rate,
            seeds,
        )
