"""A gate for each text, which scales the changes that a method makes."""

from collections.abc import Sequence
import math
from typing import Any

import keras
from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.layers import initializers
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer


@keras.saving.register_keras_serializable("tf_adapters")
class TextGate(Float32Layer):
    """Computes one gate for each text: the mean of `sigmoid(x W + b)`.

    The mean is over the text's tokens. This is UniPELT's gate (Mao et al. 2022,
    arXiv:2110.07577, section 3.2) as in the `adapters` library, with one
    difference. In the library, padding is part of the mean, so a prediction
    depends on the other texts of its batch. Here, padding is left out.

    Call arguments:
        x: `(batch, tokens, width)`.
        padding_mask: `(batch, tokens)`, 0 at padding.

    Returns:
        `(batch, 1, 1)`, between 0 and 1.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def build(self, input_shape: Sequence[Any]) -> None:
        width = input_shape[-1]
        limit = 1 / math.sqrt(width)
        self.kernel = self.add_weight(
            (width, 1),
            initializers.random_normal(0.02),
            name="kernel",
        )
        self.bias = self.add_weight(
            (1,), initializers.random_uniform(limit), name="bias"
        )

    def call(self, x: Tensor, padding_mask: Tensor) -> Tensor:
        opened = ops.sigmoid(dense(x, self.kernel, self.bias))
        is_token = ops.cast(padding_mask, x.dtype)[..., None]
        # A missing choice of a question has no tokens. Its gate has no effect,
        # but must not be NaN.
        number = ops.maximum(ops.sum(is_token, axis=1, keepdims=True), 1)
        return ops.sum(opened * is_token, axis=1, keepdims=True) / number
