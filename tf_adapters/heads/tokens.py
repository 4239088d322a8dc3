"""Dropout and a linear layer on every token."""

import keras
from keras import ops

from tf_adapters.heads.linear import ABSENT
from tf_adapters.layers.dense import dense
from tf_adapters.layers.random import dropout


@keras.saving.register_keras_serializable("tf_adapters")
class TokenHead(keras.layers.Layer):
    """Maps the vector of each token to `num_outputs` numbers.

    Args:
        num_outputs: Integer. Width of the output.
        dropout_rate: Float. Dropout on what is read, in training.

    Call arguments:
        outputs: Dict that `AdaptedEncoder` returns, and `padding_mask`
            `(batch, tokens)`.
        seeds: `Seeds` in training, else `None`.

    Returns:
        Float32 tensor of shape `(batch, tokens, num_outputs)`, `ABSENT` at
        padding, so that a softmax over tokens does not see it.
    """

    def __init__(self, num_outputs, dropout_rate, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.num_outputs = num_outputs
        self.dropout_rate = dropout_rate

    def build(self, width):
        self.kernel = self.add_weight(
            (width, self.num_outputs),
            keras.initializers.TruncatedNormal(stddev=0.02),
            name="kernel",
        )
        self.bias = self.add_weight((self.num_outputs,), "zeros", name="bias")

    @property
    def kernel_after_dropout(self):
        """What mixout mixes in place of the dropout before it."""
        return self.kernel

    def call(self, outputs, seeds=None):
        x = ops.cast(outputs["sequence_output"], "float32")
        x = dropout(x, self.dropout_rate, seeds)
        kernel = ops.convert_to_tensor(self.kernel, "float32")
        x = dense(x, kernel, ops.convert_to_tensor(self.bias, "float32"))
        is_there = ops.cast(outputs["padding_mask"], "bool")[..., None]
        return ops.where(is_there, x, ABSENT)
