"""The layer of the head for masked language modeling."""

from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.data.examples import IGNORED
from tf_adapters.heads.linear import width_of
from tf_adapters.layers import activations
from tf_adapters.layers import initializers
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.normalization import layer_norm

if TYPE_CHECKING:
    from tf_adapters.layers.stateless_seeds import StatelessSeeds


@keras.saving.register_keras_serializable("tf_adapters")
class MaskedLMLayer(Float32Layer):
    """Scores masked tokens if they are known; otherwise predicts them.

    Args:
        vocabulary_size: Integer. Number of tokens in the vocabulary.
        embedding_width: Integer. Width of the token embedding.
        activation: Name of an activation.
        epsilon: Epsilon of the layer norm.
        num_best: Number of tokens to predict for each mask. Defaults to 5.
        **kwargs: See `keras.layers.Layer`.

    Call arguments:
        outputs: Dict that `AdaptedEncoder` returns, with the additional entries
            `token_embeddings`, the encoder's, of shape
            `(vocabulary, embedding_width)`, and `masked_positions` of shape
            `(batch, masks)`. If the masked tokens are known, the dict also has
            `masked_ids` of shape `(batch, masks)`.
        seeds: Not used, because the head has no dropout.

    Returns:
        If `masked_ids` is given, a float32 tensor `(batch, masks, 2)`. It has
        two numbers for each masked token: its log probability, and 1 if no
        other token is more probable, else 0. Otherwise, a float32 tensor
        `(batch, masks, num_best, 2)` with the probabilities and ids of the most
        probable tokens, the most probable first. Unused entries of texts with
        fewer masks are `IGNORED`.
    """

    # Function that applies the inverse of an invertible adapter to embeddings,
    # or `None` if the method has no such adapter.
    undo_embeddings = None

    def __init__(
        self,
        vocabulary_size: int,
        embedding_width: int,
        activation: str,
        epsilon: float,
        num_best: int = 5,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.embedding_width = embedding_width
        self.epsilon = epsilon
        self.num_best = num_best
        self._activation = activations.get_activation(activation)

    def build(self, input_shape: Any) -> None:
        narrow = self.embedding_width
        self.kernel = self.add_weight(
            (width_of(input_shape), narrow),
            initializers.truncated_normal(0.02),
            name="kernel",
        )
        self.bias = self.add_weight((narrow,), "zeros", name="bias")
        self.gamma = self.add_weight((narrow,), "ones", name="gamma")
        self.beta = self.add_weight((narrow,), "zeros", name="beta")
        self.output_bias = self.add_weight(
            (self.vocabulary_size,), "zeros", name="output_bias"
        )

    @property
    def output_shape(self) -> tuple[None, None, int, int]:
        """The output shape without `masked_ids`, for Keras's `summary`."""
        return (None, None, self.num_best, 2)

    def logits(self, x: Tensor, token_embeddings: Tensor) -> Tensor:
        """Returns logits over the vocabulary, `(..., vocabulary)`.

        Args:
            x: `(..., width)`. Vectors of the encoder.
            token_embeddings: `(vocabulary, embedding_width)`.
        """
        x = dense(
            ops.cast(x, "float32"), _value(self.kernel), _value(self.bias)
        )
        x = layer_norm(
            self._activation(x),
            _value(self.gamma),
            _value(self.beta),
            self.epsilon,
        )
        if self.undo_embeddings is not None:
            x = self.undo_embeddings(x)
        table = ops.cast(ops.convert_to_tensor(token_embeddings), "float32")
        return ops.matmul(x, ops.transpose(table)) + _value(self.output_bias)

    def call(
        self, outputs: dict[str, Tensor], seeds: "StatelessSeeds | None" = None
    ) -> Tensor:
        positions = outputs["masked_positions"]
        x = ops.take_along_axis(
            outputs["sequence_output"],
            ops.maximum(positions, 0)[..., None],
            axis=1,
        )
        logits = self.logits(x, outputs["token_embeddings"])
        total = ops.logsumexp(logits, axis=-1)
        if "masked_ids" in outputs:
            return _of_known(logits, total, outputs["masked_ids"])
        best, ids = ops.top_k(logits, self.num_best)
        values = ops.stack(
            [ops.exp(best - total[..., None]), ops.cast(ids, "float32")],
            axis=-1,
        )
        there = positions != IGNORED
        return ops.where(there[..., None, None], values, float(IGNORED))


def _of_known(logits: Tensor, total: Tensor, ids: Tensor) -> Tensor:
    there = ids != IGNORED
    right = ops.take_along_axis(
        logits, ops.where(there, ids, 0)[..., None], axis=-1
    )[..., 0]
    hit = ops.cast(right >= ops.max(logits, axis=-1), "float32")
    values = ops.stack([right - total, hit], axis=-1)
    return ops.where(there[..., None], values, float(IGNORED))


def _value(variable: keras.Variable) -> Tensor:
    return ops.convert_to_tensor(variable, "float32")
