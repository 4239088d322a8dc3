"""A Keras model that turns texts into vectors."""

import keras
from keras import ops

from tf_adapters.common.checks import check_known
from tf_adapters.heads.windows import pool_windows
from tf_adapters.models.encoder_model import as_sequences

POOLINGS = ("mean", "first_token")


class TextVectors(keras.Model):
    """The encoder's output with an adapter, pooled to a vector for each text.

    Args:
        model: `AdapterModel`.
        pooling: One of `POOLINGS`.

    Call arguments:
        inputs: Dict as for `AdapterModel`, `(batch, tokens)` or `(batch,
            windows, tokens)`. With windows, a text's vector is the mean of its
            windows' vectors.

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
        vectors = self._of_sequences(inputs)
        mask = inputs["padding_mask"]
        if len(mask.shape) < 3:
            return vectors
        return pool_windows(vectors, mask, "mean")

    def _of_sequences(self, inputs):
        outputs = self.model.encode(inputs)
        if self.pooling == "first_token":
            return ops.cast(outputs["first_token_output"], "float32")
        mask = as_sequences(inputs)["padding_mask"]
        mask = ops.cast(mask, "float32")[..., None]
        vectors = ops.cast(outputs["sequence_output"], "float32")
        # A padding window has no tokens.
        counts = ops.maximum(ops.sum(mask, axis=1), 1.0)
        return ops.sum(vectors * mask, axis=1) / counts
