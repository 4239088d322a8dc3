"""The Keras layer of the head for multiple choice."""

from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.heads.linear import LinearLayer
from tf_adapters.layers.banks.heads import ABSENT
from tf_adapters.layers.float32_layer import Float32Layer

if TYPE_CHECKING:
    from tf_adapters.layers.stateless_seeds import StatelessSeeds


@keras.saving.register_keras_serializable("tf_adapters")
class ChoiceLayer(Float32Layer):
    """Maps the vector of each choice to a score.

    Args:
        reads: See `LinearLayer`.
        dropout_rate: See `LinearLayer`.
        hidden_activation: See `LinearLayer`.
        hidden_dropout_rate: See `LinearLayer`.
        **kwargs: See `keras.layers.Layer`.

    The model's inputs have shape `(batch, choices, tokens)`. Questions with
    fewer choices are padded with choices that have no tokens.

    Returns:
        Float32 tensor `(batch, choices)`. The scores of padding choices are
        `ABSENT`, so a softmax ignores them.

    Raises:
        UserError: If `padding_mask` does not have three axes.
    """

    def __init__(
        self,
        reads: str,
        dropout_rate: float,
        hidden_activation: str | None = None,
        hidden_dropout_rate: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.linear = LinearLayer(
            1,
            reads,
            dropout_rate,
            hidden_activation,
            hidden_dropout_rate,
            name="score",
        )

    def build(self, input_shape: Any) -> None:
        self.linear.build(input_shape)

    @property
    def output_shape(self) -> tuple[None, None]:
        """The output shape that Keras's `summary` prints."""
        return (None, None)

    @property
    def kernels_after_dropout(self) -> list[keras.Variable]:
        """The kernels to which mixout applies; see `LinearLayer`."""
        return self.linear.kernels_after_dropout

    def call(
        self, outputs: dict[str, Tensor], seeds: "StatelessSeeds | None" = None
    ) -> Tensor:
        mask = outputs["padding_mask"]
        if len(mask.shape) != 3:
            raise UserError(
                "A head of choices takes inputs of shape (batch, choices, "
                f"tokens). Received: inputs of shape {tuple(mask.shape)}."
            )
        scores = self.linear(outputs, seeds=seeds)
        scores = ops.reshape(scores, ops.shape(mask)[:2])
        is_there = ops.any(ops.cast(mask, "bool"), axis=-1)
        return ops.where(is_there, scores, ABSENT)
