"""A gate for each text that opens or closes what a method adds to it."""

import math

import keras
from keras import ops

from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer


@keras.saving.register_keras_serializable("tf_adapters")
class TextGate(Float32Layer):
    """The mean over a text's tokens of `sigmoid(x W + b)`, one number a text.

    UniPELT's gate (Mao et al. 2022, arXiv:2110.07577, section 3.2), as in the
    `adapters` library. There padding counts as tokens do, so that an answer
    depends on the other texts of its batch; here it does not count.

    Call arguments:
        x: `(batch, tokens, width)`.
        padding_mask: `(batch, tokens)`, 0 at padding.

    Returns:
        `(batch, 1, 1)`, between 0 and 1.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)

    def build(self, input_shape):
        width = input_shape[-1]
        limit = 1 / math.sqrt(width)
        self.kernel = self.add_weight(
            (width, 1),
            keras.initializers.RandomNormal(stddev=0.02),
            name="kernel",
        )
        self.bias = self.add_weight(
            (1,), keras.initializers.RandomUniform(-limit, limit), name="bias"
        )

    def call(self, x, padding_mask):
        opened = ops.sigmoid(dense(x, self.kernel, self.bias))
        is_token = ops.cast(padding_mask, x.dtype)[..., None]
        # A choice that is not there has no token, and its gate no effect.
        number = ops.maximum(ops.sum(is_token, axis=1, keepdims=True), 1)
        return ops.sum(opened * is_token, axis=1, keepdims=True) / number
