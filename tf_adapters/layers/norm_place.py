"""Where a block applies the layer norm of a sublayer, for `AdaptedBlock`.

Let `f` be a sublayer, `s` the slot after it and `h` the vectors that come in.
"""

from collections.abc import Callable

from tf_adapters.common.types import Tensor
from tf_adapters.layers.slot import BLOCK_PLACES

_AFTER_NORM = ("after_attention_norm", "after_ffn_norm")


class PostNorm:
    """Computes `norm(h + s(f(h)))`, as BERT does."""

    places = BLOCK_PLACES
    hint = ""

    def read(self, h: Tensor, norm: Callable[[Tensor], Tensor]) -> Tensor:
        """Returns the input of the sublayer."""
        return h

    def write(self, total: Tensor, norm: Callable[[Tensor], Tensor]) -> Tensor:
        """Returns the new vectors, given the sum of residual and output."""
        return norm(total)

    def for_slot(
        self, norm: Callable[[Tensor], Tensor]
    ) -> Callable[[Tensor], Tensor]:
        """Returns the norm that follows the slot, or `None`."""
        return norm


class PreNorm:
    """Computes `h + s(f(norm(h)))`, as ModernBERT does."""

    places = tuple(name for name in BLOCK_PLACES if name not in _AFTER_NORM)
    hint = (
        "The norms of this encoder's blocks come before their sublayers, so "
        "nothing can be attached after a norm."
    )

    def read(self, h: Tensor, norm: Callable[[Tensor], Tensor]) -> Tensor:
        """Returns the input of the sublayer."""
        return norm(h)

    def write(self, total: Tensor, norm: Callable[[Tensor], Tensor]) -> Tensor:
        """Returns the new vectors, given the sum of residual and output."""
        return total

    def for_slot(self, norm: Callable[[Tensor], Tensor]) -> None:
        """Returns the norm that follows the slot, or `None`."""
        return None


NORM_PLACES = {"post": PostNorm(), "pre": PreNorm()}
