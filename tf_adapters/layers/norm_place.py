"""Where `AdaptedBlock` applies a layer norm: after a sublayer, or before it."""

from collections.abc import Callable

from tf_adapters.common.types import Tensor
from tf_adapters.layers.slot import BLOCK_PLACES

_AFTER_NORM = ("after_attention_norm", "after_ffn_norm")


class PostNorm:
    """Computes `norm(h + slot(sublayer(h)))`, as BERT does.

    `h` are the hidden states before the sublayer.
    """

    places = BLOCK_PLACES
    hint = ""

    def read(self, h: Tensor, norm: Callable[..., Tensor]) -> Tensor:
        """Returns the input of the sublayer: `h` itself, without the norm."""
        return h

    def write(self, total: Tensor, norm: Callable[..., Tensor]) -> Tensor:
        """Returns the new hidden states, `norm(total)`.

        `total` is the sum of the residual and the slot's output.
        """
        return norm(total)

    def for_slot(self, norm: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """Returns `norm`, because this norm is applied after the slot."""
        return norm


class PreNorm:
    """Computes `h + slot(sublayer(norm(h)))`, as ModernBERT does.

    `h` are the hidden states before the norm.
    """

    places = tuple(name for name in BLOCK_PLACES if name not in _AFTER_NORM)
    hint = (
        "The norms of this encoder's blocks come before their sublayers, so "
        "nothing can be attached after a norm."
    )

    def read(self, h: Tensor, norm: Callable[..., Tensor]) -> Tensor:
        """Returns the input of the sublayer, the normalized `norm(h)`."""
        return norm(h)

    def write(self, total: Tensor, norm: Callable[..., Tensor]) -> Tensor:
        """Returns the new hidden states, `total`, without a norm.

        `total` is the sum of the residual and the slot's output.
        """
        return total

    def for_slot(self, norm: Callable[..., Tensor]) -> None:
        """Returns `None`, because no norm is applied after the slot."""
        return None


NORM_PLACES = {"post": PostNorm(), "pre": PreNorm()}
