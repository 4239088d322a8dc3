"""Layer norms of which each example uses its adapter's."""

import keras

from tf_adapters.common.types import Tensor
from tf_adapters.layers.banks.bank_layer import BankLayer


class BankNorm(BankLayer):
    """Holds scales and offsets; row 0 has the encoder's own.

    A norm without an offset equals a norm with offset 0.
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
    """Returns gamma and beta of a layer norm.

    Args:
        norm: Layer norm, or a `BankNorm` with a norm for each adapter.
        adapter_rows: See `Context`. Used only with a `BankNorm`.
    """
    if isinstance(norm, BankNorm):
        return norm(adapter_rows)
    return norm.gamma, norm.beta
