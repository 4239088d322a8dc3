"""Mixout: random neurons use their initial outgoing weights for a step."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers import reparameterization
from tf_adapters.layers.float32_layer import Float32Layer

if TYPE_CHECKING:
    from tf_adapters.layers.stateless_seeds import StatelessSeeds


@keras.saving.register_keras_serializable("tf_adapters")
class Mixout(Float32Layer):
    """Mixes a kernel with its initial value in training.

    A gate `m` is drawn for each input neuron; it is 0 with probability `rate`
    and 1 otherwise. With the kernel `W` and its initial value `U`, all outgoing
    weights of the neuron become

        ((1 - m) U + m W - rate U) / (1 - rate)

    The expected value is `W` (Lee et al. 2020, arXiv:1909.11299; He et al.
    2021, table 7). With `U = 0` this is dropout, which mixout replaces.

    Args:
        shape: Shape of the kernel, with the input axes first.
        rate: Float in `[0, 1)`. Probability that a neuron uses its initial
            weights.
        num_input_axes: Integer. Number of input axes of the kernel. Defaults
            to 1.
        **kwargs: See `keras.layers.Layer`.

    Raises:
        UserError: If `rate` is not in `[0, 1)`.
    """

    replaces_dropout = True

    def __init__(
        self,
        shape: Sequence[int],
        rate: float,
        num_input_axes: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise UserError(
                "The rate of mixout must lie in [0, 1). Received: "
                f"mixout={rate}"
            )
        self.shape = tuple(shape)
        self.rate = rate
        self.gates_shape = (
            *self.shape[:num_input_axes],
            *[1] * (len(self.shape) - num_input_axes),
        )

    def build(self, input_shape: Sequence[Any] | None = None) -> None:
        self.initial = self.add_weight(
            self.shape, "zeros", trainable=False, name="initial"
        )

    def start_from(self, value: Tensor) -> None:
        """Sets the initial value with which mixout mixes the kernel."""
        self.initial.assign(value)

    def call(
        self, value: Tensor, seeds: "StatelessSeeds | None" = None
    ) -> Tensor:
        if seeds is None:
            return value
        noise = keras.random.uniform(self.gates_shape, seed=seeds)
        gates = ops.cast(noise >= self.rate, value.dtype)
        initial = ops.cast(self.initial, value.dtype)
        mixed = gates * value + (1 - gates) * initial
        return (mixed - self.rate * initial) / (1 - self.rate)


def mixout_pairs(
    rate: float, kernels: list[tuple[keras.Variable, int]], model: Any
) -> list[tuple[keras.Variable, keras.layers.Layer]]:
    """Returns pairs of a kernel and its `Mixout`.

    The list is empty if `rate` is 0. Otherwise it also includes the kernels of
    the model's head layer that follow a dropout.

    Args:
        rate: Float in `[0, 1)`; see `Mixout`.
        kernels: List of pairs of a trained kernel that follows a dropout, and
            the number of its input axes.
        model: `AdapterModel`.
    """
    if not rate:
        return []
    of_head = getattr(model.head_layer, "kernels_after_dropout", ())
    kernels = [*kernels, *((kernel, 1) for kernel in of_head)]
    return [
        (kernel, _mixout(kernel, rate, num_input_axes))
        for kernel, num_input_axes in kernels
    ]


def _mixout(kernel: keras.Variable, rate: float, num_input_axes: int) -> Mixout:
    name = reparameterization.name_for(kernel)
    layer = Mixout(kernel.shape, rate, num_input_axes, name=name)
    layer.build()
    layer.start_from(ops.convert_to_numpy(kernel))
    return layer
