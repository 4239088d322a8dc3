"""The two-layer bottleneck shared by every bottleneck adapter."""

from collections.abc import Sequence
import math
import typing
from typing import Any

import keras

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers import activations
from tf_adapters.layers import initializers
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer

Initialization = typing.Literal["truncated_normal", "normal", "zero_up"]


@keras.saving.register_keras_serializable("tf_adapters")
class Bottleneck(Float32Layer):
    """Computes the residual branch of a bottleneck adapter.

    For a token vector `x` of width `d` and a bottleneck of width `m`:

        delta(x) = W_up f(W_down x + b_down) + b_up

    with `W_down: d -> m` and `W_up: m -> d`. The layer does not add a residual;
    the caller adds one according to its paper. The layer has `2dm + d + m`
    weights (Houlsby et al. 2019, section 2.1).

    Args:
        units: Integer, at least 1. Width `m` of the bottleneck.
        activation: Name of `f`; see `tf_adapters.layers.activations`. Defaults
            to `"gelu_tanh"`, as in the authors' code.
        initialization: Initialization of both kernels; biases start at zero.
            `"truncated_normal"` (default): normal with standard deviation
            `init_stddev`, truncated at two standard deviations (Houlsby et al.
            2019, section 3.6). `"normal"`: not truncated. `"zero_up"`: `W_down`
            is uniform in `+-1/sqrt(d)` and `W_up` is zero, so `delta` is
            exactly zero at the start.
        init_stddev: Positive float. Standard deviation of the initial kernels.
            Defaults to `1e-2`.
        **kwargs: See `keras.layers.Layer`.

    Call arguments:
        inputs: Float tensor of shape `(..., d)`.

    Returns:
        Float tensor of shape `(..., d)`.

    Raises:
        UserError: If an argument is out of its range.
    """

    def __init__(
        self,
        units: int,
        activation: str = "gelu_tanh",
        initialization: str = "truncated_normal",
        init_stddev: float = 1e-2,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if units < 1:
            raise UserError(
                "Invalid value for argument `units`: the bottleneck needs at "
                f"least one unit. Received: units={units}"
            )
        if init_stddev <= 0:
            raise UserError(
                "Invalid value for argument `init_stddev`: with both kernels "
                "at zero neither receives a gradient. Received: "
                f"init_stddev={init_stddev}"
            )
        known = typing.get_args(Initialization)
        check_known("initialization", initialization, known)
        self.units = units
        self.activation = activation
        self.initialization = initialization
        self.init_stddev = init_stddev
        self._activation = activations.get_activation(activation)

    def build(self, input_shape: Sequence[Any]) -> None:
        width = input_shape[-1]
        down, up = self._initializers(width)
        self.down_kernel = self.add_weight(
            (width, self.units), down, name="down_kernel"
        )
        self.down_bias = self.add_weight(
            (self.units,), "zeros", name="down_bias"
        )
        self.up_kernel = self.add_weight(
            (self.units, width), up, name="up_kernel"
        )
        self.up_bias = self.add_weight((width,), "zeros", name="up_bias")

    def _initializers(
        self, width: int
    ) -> tuple[keras.Initializer, keras.Initializer | str]:
        if self.initialization == "zero_up":
            limit = 1 / math.sqrt(width)
            return initializers.random_uniform(limit), "zeros"
        initializer = {
            "truncated_normal": initializers.truncated_normal,
            "normal": initializers.random_normal,
        }[self.initialization]
        return (
            initializer(self.init_stddev),
            initializer(self.init_stddev),
        )

    def call(self, inputs: Tensor) -> Tensor:
        return dense(self.activations(inputs), self.up_kernel, self.up_bias)

    def activations(self, inputs: Tensor) -> Tensor:
        """Returns the activations of the bottleneck's units, `(..., units)`."""
        return dense(inputs, self.down_kernel, self.down_bias, self._activation)
