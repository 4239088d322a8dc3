"""Texts as vectors."""

import keras
from keras import ops

from tf_adapters.common.suggestions import check_known

POOLINGS = ("mean", "first_token")


class TextVectors(keras.Model):
    """The encoder's output with an adapter, pooled to a vector for each text.

    Args:
        model: `AdapterModel`.
        pooling: One of `POOLINGS`.

    Call arguments:
        inputs: Dict as for `AdapterModel`, `(batch, tokens)`.

    Returns:
        Float32 tensor `(batch, width)`.
    """

    def __init__(self, model, pooling="mean"):
        super().__init__(autocast=False, trainable=False)
        check_known("pooling", pooling, POOLINGS)
        self.model = model
        self.pooling = pooling
        self.built = True

    def call(self, inputs, training=None):
        outputs = self.model.encode(inputs)
        if self.pooling == "first_token":
            return ops.cast(outputs["first_token_output"], "float32")
        mask = ops.cast(inputs["padding_mask"], "float32")[..., None]
        vectors = ops.cast(outputs["sequence_output"], "float32")
        return ops.sum(vectors * mask, axis=1) / ops.sum(mask, axis=1)
