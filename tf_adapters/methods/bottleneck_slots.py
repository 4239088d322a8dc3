"""What Houlsby's and Pfeiffer's adapters share: the slot, its width, blocks."""

import keras

from tf_adapters.common.errors import UserError
from tf_adapters.common.suggestions import check_choices
from tf_adapters.layers.bottleneck import Bottleneck
from tf_adapters.methods import mixout

# The weights of a `Bottleneck`, as an adapter folder names them.
PARTS = ("down_kernel", "down_bias", "up_kernel", "up_bias")


class BottleneckSlot(keras.layers.Layer):
    """Slot `x + delta(reads(x, context))`: a bottleneck on what a method reads.

    Args:
        reads: Function of `x` and its `Context` that returns what the
            bottleneck reads, of the shape of `x`.
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
        super().__init__(autocast=False, **kwargs)
        self.reads = reads
        self.delta = Bottleneck(
            units, activation, initialization, init_stddev, name="delta"
        )

    def build(self, x_shape):
        if not self.delta.built:
            self.delta.build(x_shape)

    def call(self, x, context=None, training=None):
        return x + self.delta(self.reads(x, context)), {}


def check_settings(method):
    """Raises a `UserError` if a bottleneck's setting cannot be."""
    check_choices(method)
    factor = method.reduction_factor
    if factor is not None and not factor > 0:
        raise UserError(
            "`reduction_factor` is the encoder's width over the bottleneck's, "
            f"a positive number. Received: reduction_factor={factor}"
        )
    if method.units < 1:
        raise UserError(
            "The bottleneck needs at least one unit. Received: "
            f"units={method.units}"
        )


def width_of_bottleneck(method, width):
    """Returns the bottleneck's width for token vectors of width `width`.

    `reduction_factor`, where given, wins over `units`.
    """
    if method.reduction_factor is None:
        return method.units
    return max(1, int(width // method.reduction_factor))


def kept_blocks(method, num_blocks):
    """Returns for each block whether it has adapters.

    Raises:
        UserError: If `leave_out` names a block that does not exist.
    """
    unknown = [i for i in method.leave_out if not 0 <= i < num_blocks]
    if unknown:
        raise UserError(
            f"`leave_out` names blocks {unknown}, but the encoder has blocks 0 "
            f"to {num_blocks - 1}."
        )
    return [i not in method.leave_out for i in range(num_blocks)]


def layer_options(method, width):
    """Returns the keyword arguments of `Bottleneck` for this method."""
    return {
        "units": width_of_bottleneck(method, width),
        "activation": method.activation,
        "initialization": method.initialization,
        "init_stddev": method.init_stddev,
    }


def mixout_of_method(rate, model):
    """Returns the reparameterization of mixout: what follows a dropout mixes.

    That is `W_down`, which reads the sublayer's output after its dropout, and
    the head; nothing is dropped before `W_up`.
    """
    kernels = [
        (slot.delta.down_kernel, 1)
        for slots in model.slots
        for slot in slots.values()
    ]
    return mixout.mixout_pairs(rate, kernels, model)
