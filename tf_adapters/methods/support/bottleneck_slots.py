"""What Houlsby's and Pfeiffer's adapters share: the slot, its width, places."""

import typing

import keras

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.layers import mixout
from tf_adapters.layers.bottleneck import Bottleneck
from tf_adapters.layers.slot_of_layers import SlotOfLayers
from tf_adapters.methods.method import Method

# The weights of a `Bottleneck`, as an adapter folder names them.
PARTS = ("down_kernel", "down_bias", "up_kernel", "up_bias")
# The axis along which its units lie, of each part that has them.
UNITS_AXIS = {"down_kernel": 1, "down_bias": 0, "up_kernel": 0}

# What a bottleneck reads: the sublayer's output, before residual and norm; what
# the block would put out without the slot; or the sublayer's input.
Reads = typing.Literal["sublayer_output", "normed_output", "residual"]

# Where the bottlenecks of each paper stand, and what they read.
PLACEMENTS = {
    "houlsby": (("after_attention", "after_ffn"), "sublayer_output"),
    "pfeiffer": (("after_ffn",), "normed_output"),
}


def read(name, x, context):
    """Returns what `Reads` names, of the shape of `x`."""
    if name == "normed_output":
        return context.norm(x + context.residual)
    return x if name == "sublayer_output" else context.residual


@keras.saving.register_keras_serializable("tf_adapters")
class BottleneckSlot(SlotOfLayers):
    """Slot `x + delta(read)`: a bottleneck on what a method reads.

    Args:
        reads: One of `Reads`.
        units, activation, initialization, init_stddev: See `Bottleneck`.

    Call arguments:
        x: `(batch, tokens, width)` sublayer output, after its dropout.
        context: `Context`.

    Returns:
        The sum, of the shape of `x`, and no probes.
    """

    def __init__(
        self, reads, units, activation, initialization, init_stddev, **kwargs
    ):
        super().__init__(**kwargs)
        check_known("reads", reads, typing.get_args(Reads))
        self.reads = reads
        self.delta = Bottleneck(
            units, activation, initialization, init_stddev, name="delta"
        )

    def call(self, x, context=None, training=None):
        return x + self.delta(read(self.reads, x, context)), {}


def settle_width(method, default_factor):
    """Leaves one of `units` and `reduction_factor`, so that equals are equal.

    `reduction_factor`, where given, wins over `units`: folders may have both.

    Args:
        method: Method with the two settings, `None` where not given.
        default_factor: The `reduction_factor` if neither is given.

    Raises:
        UserError: If one of them cannot be.
    """
    units, factor = method.units, method.reduction_factor
    if units is None and factor is None:
        factor = default_factor
    if factor is not None:
        units = None
    object.__setattr__(method, "reduction_factor", factor)
    object.__setattr__(method, "units", units)
    check_settings(method)


def check_settings(method):
    """Raises a `UserError` if a bottleneck's setting cannot be."""
    units = method.units
    check_reduction_factor(method.reduction_factor)
    if units is not None and units < 1:
        raise UserError(
            f"The bottleneck needs at least one unit. Received: units={units}"
        )


def check_reduction_factor(factor):
    """Raises a `UserError` unless a bottleneck can have such a factor."""
    if factor is not None and not factor >= 1e-3:
        raise UserError(
            "`reduction_factor` is the encoder's width over the bottleneck's, "
            "a positive number of at least 0.001. Received: "
            f"reduction_factor={factor}"
        )


def width_of_bottleneck(method, width):
    """Returns the bottleneck's width for token vectors of width `width`.

    `reduction_factor`, where given, wins over `units`.
    """
    if method.reduction_factor is None:
        return method.units
    return max(1, int(width // method.reduction_factor))


class BottleneckMethod(Method):
    """A method that stands and reads as `stacks_as`; settings as `Pfeiffer`."""

    def __post_init__(self):
        super().__post_init__()
        check_settings(self)

    def make_slots(self, shape):
        """Returns one dict of slots for each block."""
        places, reads = PLACEMENTS[self.stacks_as]

        def make(place, name):
            return BottleneckSlot(
                reads,
                width_of_bottleneck(self, shape.width),
                self.activation,
                self.initialization,
                self.init_stddev,
                name=name,
            )

        return self.fill_places(shape, places, make)

    def reparameterize(self, model):
        """Returns what mixout mixes, if anything: what follows a dropout.

        That is `W_down`, which reads the sublayer's output after its dropout,
        and the head; nothing is dropped before `W_up`.
        """
        kernels = [
            (slot.delta.down_kernel, 1)
            for slot in model.own_slots()
            if isinstance(slot, BottleneckSlot)
        ]
        return mixout.mixout_pairs(self.mixout, kernels, model)
