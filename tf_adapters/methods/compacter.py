"""Compacter and Compacter++: Mahabadi et al. 2021, arXiv:2106.04647."""

from collections.abc import Sequence
import dataclasses
import math
import typing
from typing import Any

import keras
from keras import ops

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers import activations
from tf_adapters.layers import bottleneck_reads
from tf_adapters.layers import initializers
from tf_adapters.layers.banks.bank_layer import Part
from tf_adapters.layers.banks.branches import BankBottleneck
from tf_adapters.layers.context import Context
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.slot_of_layers import SlotGivenLayers
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.registry import register
from tf_adapters.methods.support import bottleneck_slots


@register("compacter")
@dataclasses.dataclass(frozen=True)
class Compacter(Method):
    """Adds bottlenecks whose kernels are sums of Kronecker products.

    A kernel of order `n` is `sum_i A_i (x) (s_i t_i)`, where `(x)` is the
    Kronecker product. All kernels of all blocks share the `n` matrices `A_i` of
    shape `(n, n)`. The product `s_i t_i` has rank `rank`. With width `d` and
    bottleneck width `m`, each bottleneck trains `2 rank (d + m) + d + m`
    weights, in addition to the `n^3` shared ones.

    Attributes:
        placement: `"houlsby"` (default) attaches two bottlenecks to each block
            (Compacter). `"pfeiffer"` attaches one, which reads the normalized
            output (Compacter++).
        units: Bottleneck width `m`; used if `reduction_factor` is `None`.
        reduction_factor: Ratio `d / m`. Defaults to 32 if `units` is not set
            either, as in the `adapters` library.
        activation: Activation of the bottlenecks; GELU in that library.
        order: Order `n`, the number of Kronecker products in a kernel. It must
            divide `d` and `m`; 4 in the paper and that library.
        rank: Rank of `s_i t_i`; 1 in the paper and that library.
        leave_out: Indices of blocks without adapters.

    Examples:
        >>> plus_plus = methods.Compacter("pfeiffer", units=8)
        >>> tuple(tf_adapters.adapt(encoder, plus_plus, head)(features).shape)
        (2, 2)
    """

    placement: typing.Literal["houlsby", "pfeiffer"] = "houlsby"
    units: int | None = None
    reduction_factor: float | None = None
    activation: activations.Activation = "gelu"
    order: int = 4
    rank: int = 1
    leave_out: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        bottleneck_slots.settle_width(self, default_factor=32.0)
        for name in ("order", "rank"):
            value = getattr(self, name)
            if value < 1:
                raise UserError(
                    f"`{name}` must be 1 or more. Received: {value}"
                )

    def make_slots(self, shape: EncoderShape) -> list[dict[str, Slot]]:
        """Returns each block's slots: a list of dicts from place to slot."""
        places, reads = bottleneck_slots.PLACEMENTS[self.placement]
        units = bottleneck_slots.width_of_bottleneck(self, shape.width)
        if shape.width % self.order or units % self.order:
            raise UserError(
                "`order` must divide the encoder's width and the bottleneck's. "
                f"Received: order={self.order}, widths {shape.width} and "
                f"{units}"
            )
        factors = KroneckerFactors(self.order, name="shared_factors")
        # Built here: the first slot would otherwise add its own name to the
        # paths of these shared variables.
        factors.build()

        def make(place: str, name: str) -> "CompacterSlot":
            return CompacterSlot(
                factors, reads, units, self.activation, self.rank, name=name
            )

        return self.fill_places(shape, places, make)


@keras.saving.register_keras_serializable("tf_adapters")
class KroneckerFactors(Float32Layer):
    """Holds the matrices `A_i` that the kernels of all bottlenecks share.

    Args:
        order: Integer. Number `n` of the matrices, each `(n, n)`.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(self, order: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.order = order

    def build(self, input_shape: Sequence[Any] | None = None) -> None:
        # As in the paper's code (configs/compacter.json) and the `adapters`
        # library: the bottlenecks start close to zero.
        self.factors = self.add_weight(
            (self.order,) * 3,
            initializers.random_normal(1e-4),
            name="factors",
        )

    def kernel(self, left: Tensor, right: Tensor) -> Tensor:
        """Returns the kernel `sum_i A_i (x) (left_i right_i)`.

        `(x)` is the Kronecker product.

        Args:
            left: `(n, inputs / n, rank)`.
            right: `(n, rank, outputs / n)`.

        Returns:
            Tensor of shape `(inputs, outputs)`.
        """
        left, right = ops.convert_to_tensor(left), ops.convert_to_tensor(right)
        product = ops.einsum("iac,ibr,ird->abcd", self.factors, left, right)
        shape = (self.order * left.shape[1], self.order * right.shape[2])
        return ops.reshape(product, shape)


@keras.saving.register_keras_serializable("tf_adapters")
class CompacterSlot(SlotGivenLayers):
    """Slot that computes `x + W_up f(W_down z + b_down) + b_up`.

    `z` is the input that the argument `reads` selects. `W_down` and `W_up` are
    each a sum of `n` Kronecker products, as `KroneckerFactors` computes them.

    Args:
        factors: `KroneckerFactors`, shared by all slots.
        reads: Input of the bottleneck, one of `bottleneck_reads.Reads`.
        units: Integer. Bottleneck width `m`, a multiple of `n`.
        activation: Name of `f`.
        rank: Integer. Rank of the second factor of each Kronecker product.
            Defaults to 1.
        **kwargs: See `keras.layers.Layer`.
    """

    arguments = ("factors", "reads", "units", "activation", "rank")

    def __init__(
        self,
        factors: KroneckerFactors,
        reads: str,
        units: int,
        activation: str,
        rank: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.factors = factors
        self.reads = reads
        self.units = units
        self.activation = activation
        self.rank = rank
        self._activation = activations.get_activation(activation)

    def build(self, input_shape: Sequence[Any]) -> None:
        super().build(input_shape)
        width, n = input_shape[-1], self.factors.order
        for name, inputs, outputs in (
            ("down", width, self.units),
            ("up", self.units, width),
        ):
            for side, shape in (
                ("left", (n, inputs // n, self.rank)),
                ("right", (n, self.rank, outputs // n)),
            ):
                # Xavier normal initialization of each matrix, as in the
                # `adapters` library.
                stddev = math.sqrt(2 / (shape[1] + shape[2]))
                weight = self.add_weight(
                    shape,
                    initializers.random_normal(stddev),
                    name=f"{name}_{side}",
                )
                setattr(self, f"{name}_{side}", weight)
            bias = self.add_weight((outputs,), "zeros", name=f"{name}_bias")
            setattr(self, f"{name}_bias", bias)

    def call(
        self,
        x: Tensor,
        context: Context,
        training: bool | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        hidden = dense(
            bottleneck_reads.read(self.reads, x, context),
            self.factors.kernel(self.down_left, self.down_right),
            self.down_bias,
            self._activation,
        )
        kernel = self.factors.kernel(self.up_left, self.up_right)
        return x + dense(hidden, kernel, self.up_bias), {}

    def bank_parts(self) -> list[Part]:
        """Returns the bottleneck as a bank stores it, a list of one `Part`.

        Its kernels are the full matrices, not their factors.
        """
        kernel = self.factors.kernel
        arrays = {
            "down_kernel": kernel(self.down_left, self.down_right),
            "down_bias": self.down_bias,
            "up_kernel": kernel(self.up_left, self.up_right),
            "up_bias": self.up_bias,
        }
        return [
            BankBottleneck.part(
                arrays, reads=self.reads, activation=self.activation
            )
        ]
