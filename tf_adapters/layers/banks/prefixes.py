"""Prefixes of different lengths before the keys and values of a text."""

from collections.abc import Sequence
from typing import Any

from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.layers.banks.bank_layer import BankLayer
from tf_adapters.layers.context import Context
from tf_adapters.layers.slot import Slot


class BankPrefix(BankLayer):
    """Holds the keys and values of each adapter's prefix, and their mask.

    The mask is 0 for padding and for row 0, which belongs to no adapter, so
    that no token attends to them.
    """

    width_axes = {"keys": 0, "values": 0, "mask": 0}

    def call(self, x: Tensor, context: Context) -> tuple[Tensor, ...]:
        """Returns the keys, values and mask of each example's prefix.

        The keys and values have the dtype of `x`.
        """
        rows = context.adapter_rows
        return (
            ops.cast(self.take("keys", rows), x.dtype),
            ops.cast(self.take("values", rows), x.dtype),
            ops.cast(self.take("mask", rows), context.padding_mask.dtype),
        )


class PrefixesSlot(Slot):
    """Slot that prepends prefixes to a text's keys, values and padding mask.

    Args:
        prefixes: List of `BankPrefix`es.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(self, prefixes: Sequence[BankPrefix], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.prefixes = list(prefixes)
        self.built = True

    def call(
        self,
        keys: Tensor,
        values: Tensor,
        context: Context,
        training: bool | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        found = [prefix(keys, context=context) for prefix in self.prefixes]
        found.append((keys, values, context.padding_mask))
        keys, values, mask = (
            ops.concatenate(tensors, axis=1)
            for tensors in zip(*found, strict=True)
        )
        return keys, values, mask
