"""Bank layers whose outputs are added after a sublayer, or to embeddings."""

from collections.abc import Sequence
from typing import Any

from tf_adapters.common.types import Tensor
from tf_adapters.layers import activations
from tf_adapters.layers.banks.bank_layer import BankLayer
from tf_adapters.layers.banks.users import add_layer
from tf_adapters.layers.bottleneck_reads import read
from tf_adapters.layers.context import Context
from tf_adapters.layers.slot import Slot


class BranchesSlot(Slot):
    """Slot that computes `x + sum_i branch_i(x, context)`.

    Each example's adapter has a row in at most one of the branches; the others
    add 0.

    Args:
        branches: List of `BankLayer`s.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(self, branches: Sequence[BankLayer], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.branches = list(branches)
        self.built = True

    def call(
        self,
        x: Tensor,
        context: Context,
        training: bool | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        total = x
        for branch in self.branches:
            total = add_layer(total, branch, x, context)
        return total, {}


class BankBottleneck(BankLayer):
    """Computes `W_up f(W_down z + b_down) + b_up`, where `reads` names `z`.

    Padding adds zero rows to `W_up`, which does not change the output.

    Args:
        shapes: See `BankLayer`.
        num_rows: See `BankLayer`.
        column: See `BankLayer`.
        reads: Name of the bottleneck's input `z`; see `bottleneck_reads`.
        activation: Name of `f`.
        **kwargs: See `keras.layers.Layer`.
    """

    width_axes = {"down_kernel": 1, "down_bias": 0, "up_kernel": 0}

    def __init__(
        self,
        shapes: dict[str, tuple[int, ...]],
        num_rows: int,
        column: int,
        reads: str,
        activation: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(shapes, num_rows, column, **kwargs)
        self.reads = reads
        self._activation = activations.get_activation(activation)

    def call(self, x: Tensor, context: Context) -> Tensor:
        x, rows = read(self.reads, x, context), context.adapter_rows
        hidden = self.multiply(x, "down_kernel", rows)
        hidden = hidden + self.vectors("down_bias", rows, x.dtype)
        output = self.multiply(self._activation(hidden), "up_kernel", rows)
        return output + self.vectors("up_bias", rows, x.dtype)


class BankShift(BankLayer):
    """Computes `(z w + b) v`: AdapterBias's shift along a vector `v`.

    Args:
        shapes: See `BankLayer`.
        num_rows: See `BankLayer`.
        column: See `BankLayer`.
        reads: Name of the attribute of `Context` that holds `z`.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self,
        shapes: dict[str, tuple[int, ...]],
        num_rows: int,
        column: int,
        reads: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(shapes, num_rows, column, **kwargs)
        self.reads = reads

    def call(self, x: Tensor, context: Context) -> Tensor:
        inputs, rows = getattr(context, self.reads), context.adapter_rows
        weight = self.multiply(inputs, "kernel", rows)
        weight = weight + self.vectors("bias", rows, x.dtype)
        return weight * self.vectors("vector", rows, x.dtype)


class BankBias(BankLayer):
    """Returns the difference between an adapter's bias and the encoder's.

    The slot that contains this layer adds the difference.
    """

    is_vector = True

    def call(self, x: Tensor, context: Context) -> Tensor:
        return self.vectors("bias", context.adapter_rows, x.dtype)
