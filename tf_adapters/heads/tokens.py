"""The Keras layer of heads that compute logits for each token."""

from typing import TYPE_CHECKING

import keras
from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.heads.linear import DropoutAndLinearLayer
from tf_adapters.layers.banks.heads import ABSENT

if TYPE_CHECKING:
    from tf_adapters.layers.stateless_seeds import StatelessSeeds


@keras.saving.register_keras_serializable("tf_adapters")
class TokenLayer(DropoutAndLinearLayer):
    """Maps the vector of each token to `num_outputs` numbers.

    Args:
        num_outputs: Integer. Width of the output.
        dropout_rate: See `DropoutAndLinearLayer`.
        hidden_activation: See `DropoutAndLinearLayer`.
        hidden_dropout_rate: See `DropoutAndLinearLayer`.

    Returns:
        Float32 tensor of shape `(batch, tokens, num_outputs)`. Padding tokens
        have the value `ABSENT`, so a softmax over tokens ignores them.
    """

    @property
    def output_shape(self) -> tuple[None, None, int]:
        """The output shape that Keras's `summary` prints."""
        return (None, None, self.num_outputs)

    def call(
        self, outputs: dict[str, Tensor], seeds: "StatelessSeeds | None" = None
    ) -> Tensor:
        x = self.project(outputs["sequence_output"], seeds)
        is_there = ops.cast(outputs["padding_mask"], "bool")[..., None]
        return ops.where(is_there, x, ABSENT)
