"""The slot, widths and places that Houlsby's and Pfeiffer's adapters share."""

import typing
from typing import Any

import keras

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers import bottleneck_reads
from tf_adapters.layers import mixout
from tf_adapters.layers.activations import Activation
from tf_adapters.layers.banks.bank_layer import Part
from tf_adapters.layers.banks.branches import BankBottleneck
from tf_adapters.layers.bottleneck import Bottleneck
from tf_adapters.layers.bottleneck import Initialization
from tf_adapters.layers.context import Context
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.slot_of_layers import SlotOfLayers
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method

# The names of the weights of a `Bottleneck` in an adapter folder.
WEIGHTS = ("down_kernel", "down_bias", "up_kernel", "up_bias")
# The weights whose size depends on `units`, and the axis of the units in each.
UNITS_AXIS = {"down_kernel": 1, "down_bias": 0, "up_kernel": 0}

# For each paper, the places of its bottlenecks, and the input that they read.
PLACEMENTS = {
    "houlsby": (("after_attention", "after_ffn"), "sublayer_output"),
    "pfeiffer": (("after_ffn",), "normed_output"),
}


@keras.saving.register_keras_serializable("tf_adapters")
class BottleneckSlot(SlotOfLayers):
    """Slot that adds a bottleneck's output to `x`.

    Args:
        reads: Input of the bottleneck, one of `bottleneck_reads.Reads`.
        units: See `Bottleneck`.
        activation: See `Bottleneck`.
        initialization: See `Bottleneck`.
        init_stddev: See `Bottleneck`.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self,
        reads: str,
        units: int,
        activation: str,
        initialization: str,
        init_stddev: float,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_known("reads", reads, typing.get_args(bottleneck_reads.Reads))
        self.reads = reads
        self.delta = Bottleneck(
            units, activation, initialization, init_stddev, name="delta"
        )

    def call(
        self,
        x: Tensor,
        context: Context,
        training: bool | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return x + self.delta(bottleneck_reads.read(self.reads, x, context)), {}

    def bank_parts(self) -> list[Part]:
        """Returns the bottleneck as a bank stores it, a list of one `Part`."""
        layer = self.delta
        arrays = {name: getattr(layer, name) for name in WEIGHTS}
        return [
            BankBottleneck.part(
                arrays, reads=self.reads, activation=layer.activation
            )
        ]


def settle_width(method: Any, default_factor: float) -> None:
    """Keeps only one of a method's `units` and `reduction_factor`.

    The other is set to `None`, so that methods with the same width compare
    equal. If both are set, as in some adapter folders, `reduction_factor` takes
    precedence.

    Args:
        method: Method with the two settings. It is changed in place.
        default_factor: The `reduction_factor` if neither is set.

    Raises:
        UserError: If the kept setting is out of range.
    """
    units, factor = method.units, method.reduction_factor
    if units is None and factor is None:
        factor = default_factor
    if factor is not None:
        units = None
    object.__setattr__(method, "reduction_factor", factor)
    object.__setattr__(method, "units", units)
    check_settings(method)


def check_settings(method: Any) -> None:
    """Checks that `units` and `reduction_factor` of a method are in range.

    Raises:
        UserError: If `units` is less than 1, or `reduction_factor` is less
            than 0.001.
    """
    units = method.units
    check_reduction_factor(method.reduction_factor)
    if units is not None and units < 1:
        raise UserError(
            f"The bottleneck needs at least one unit. Received: units={units}"
        )


def check_reduction_factor(factor: float | None) -> None:
    """Raises a `UserError` if a reduction factor is less than 0.001."""
    if factor is not None and not factor >= 1e-3:
        raise UserError(
            "`reduction_factor` is the encoder's width over the bottleneck's, "
            "a positive number of at least 0.001. Received: "
            f"reduction_factor={factor}"
        )


def width_of_bottleneck(method: Any, width: int) -> int:
    """Returns the bottleneck's width for token vectors of width `width`.

    If `reduction_factor` is set, it takes precedence over `units`.
    """
    if method.reduction_factor is None:
        return method.units
    return max(1, int(width // method.reduction_factor))


class BottleneckMethod(Method):
    """Base class of methods that attach only `BottleneckSlot`s.

    `stacks_as` selects the places in `PLACEMENTS`. Subclasses have the settings
    of `Pfeiffer`, each with its own default.
    """

    stacks_as: typing.ClassVar[str]
    units: int | None
    reduction_factor: float | None
    activation: Activation
    initialization: Initialization
    init_stddev: float
    mixout: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(self)

    def make_slots(self, shape: EncoderShape) -> list[dict[str, Slot]]:
        """Returns each block's slots: a list of dicts from place to slot."""
        places, reads = PLACEMENTS[self.stacks_as]

        def make(place: str, name: str) -> BottleneckSlot:
            return BottleneckSlot(
                reads,
                width_of_bottleneck(self, shape.width),
                self.activation,
                self.initialization,
                self.init_stddev,
                name=name,
            )

        return self.fill_places(shape, places, make)

    def reparameterize(
        self, model: Any
    ) -> list[tuple[keras.Variable, keras.layers.Layer]]:
        """Returns pairs of a kernel and its `Mixout`, if mixout is used.

        Mixout applies to kernels that follow a dropout: `W_down`, which reads
        the sublayer's output after its dropout, and the head's kernels. `W_up`
        does not follow a dropout.
        """
        kernels = [
            (slot.delta.down_kernel, 1)
            for slot in model.own_slots()
            if isinstance(slot, BottleneckSlot)
        ]
        return mixout.mixout_pairs(self.mixout, kernels, model)
