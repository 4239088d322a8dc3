"""Layer norms with the scale and offset of each example's adapter."""

import keras

from tf_adapters.common.types import Tensor
from tf_adapters.layers.banks.bank_layer import BankLayer


class BankNorm(BankLayer):
    """Holds the scale and offset that each adapter has for a layer norm.

    Row 0 has the encoder's own scale and offset. The offset is 0 if the
    encoder's norm has none.
    """

    def call(self, adapter_rows: Tensor) -> tuple[Tensor, Tensor]:
        """Returns gamma and beta of each example, each `(batch, 1, d)`."""
        return (
            self.vectors("gamma", adapter_rows, "float32"),
            self.vectors("beta", adapter_rows, "float32"),
        )


def norm_weights(
    norm: keras.layers.LayerNormalization | BankNorm,
    adapter_rows: Tensor | None,
) -> tuple[Tensor, Tensor | None]:
    """Returns gamma and beta of a layer norm; beta may be `None`.

    Args:
        norm: Layer norm, or a `BankNorm` with a norm for each adapter.
        adapter_rows: See `Context`. Used only with a `BankNorm`.
    """
    if isinstance(norm, BankNorm):
        return norm(adapter_rows)
    return norm.gamma, norm.beta
