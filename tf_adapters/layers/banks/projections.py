"""Bank layers that change a projection of the encoder."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from tf_adapters.common.types import Tensor
from tf_adapters.layers.banks.bank_layer import BankLayer
from tf_adapters.layers.banks.branches import BankBias
from tf_adapters.layers.banks.users import add_layer
from tf_adapters.layers.context import Context
from tf_adapters.layers.slot import Slot


class BankLowRank(BankLayer):
    """Computes the low-rank product `(x A) B` of each example's adapter.

    `B` includes LoRA's scaling factor.
    """

    width_axes = {"down_kernel": 1, "up_kernel": 0}

    def call(self, x: Tensor, context: Context) -> Tensor:
        rows = context.adapter_rows
        down = self.multiply(x, "down_kernel", rows)
        return self.multiply(down, "up_kernel", rows)


class BankRescale(BankLayer):
    """Multiplies `x` by a vector of each example's adapter, as (IA)^3 does.

    Args:
        shapes: See `BankLayer`.
        num_rows: See `BankLayer`.
        column: See `BankLayer`.
        side: The side of the projection that is multiplied: `"input"` or
            `"output"`.
        **kwargs: See `keras.layers.Layer`.
    """

    neutral = "ones"

    def __init__(
        self,
        shapes: dict[str, tuple[int, ...]],
        num_rows: int,
        column: int,
        side: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(shapes, num_rows, column, **kwargs)
        self.side = side

    def call(self, x: Tensor, context: Context) -> Tensor:
        return x * self.vectors("vector", context.adapter_rows, x.dtype)


class ProjectionSlot(Slot):
    """Slot that computes `out * (project(z) + (z A) B + bias)`.

    Here, `z = in * x`. The factors `in` and `out` are those of (IA)^3.

    Args:
        layers: List of `BankLowRank`, `BankRescale` and `BankBias` layers.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(self, layers: Sequence[BankLayer], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        factors = [layer for layer in layers if isinstance(layer, BankRescale)]
        self.before = [layer for layer in factors if layer.side == "input"]
        self.after = [layer for layer in factors if layer.side == "output"]
        self.added = [
            layer
            for layer in layers
            if isinstance(layer, BankLowRank | BankBias)
        ]
        self.built = True

    def call(
        self,
        x: Tensor,
        project: Callable[[Tensor], Tensor],
        context: Context,
        training: bool | None = None,
    ) -> Tensor:
        for layer in self.before:
            x = layer(x, context=context)
        y = project(x)
        for layer in self.added:
            y = add_layer(y, layer, x, context)
        for layer in self.after:
            y = layer(y, context=context)
        return y
