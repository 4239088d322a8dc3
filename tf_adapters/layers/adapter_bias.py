"""The two layers of AdapterBias: a vector, and a weight for each token."""

from collections.abc import Sequence
import math
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.layers import initializers
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.hard_concrete import HardConcreteGates

if TYPE_CHECKING:
    from tf_adapters.layers.stateless_seeds import StatelessSeeds


@keras.saving.register_keras_serializable("tf_adapters")
class Vector(Float32Layer):
    """A trained vector `v`, zero at the start (AdapterBias, section 3.1).

    Args:
        width: Integer. Length of the vector.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(self, width: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.width = width

    def build(self, input_shape: Sequence[Any] | None = None) -> None:
        self.vector = self.add_weight((self.width,), "zeros", name="vector")

    def call(self) -> Tensor:
        return ops.convert_to_tensor(self.vector)


@keras.saving.register_keras_serializable("tf_adapters")
class TokenWeight(Float32Layer):
    """AdapterBias's linear layer `L_alpha`, which maps each token to a number.

    Args:
        input_width: Integer. Width of the input.
        gates: Dict of keyword arguments of `HardConcreteGates` except `shape`,
            or `None` (default) for no gates. If set, each weight of the kernel
            and the bias has a gate.
        **kwargs: See `keras.layers.Layer`.

    Call arguments:
        inputs: Float tensor of shape `(batch, tokens, input_width)`.
        seeds: `StatelessSeeds` in training. If `None`, the gates are
            deterministic.

    Returns:
        Float tensor of shape `(batch, tokens, 1)`.
    """

    def __init__(
        self,
        input_width: int,
        gates: dict[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.input_width = input_width
        self.gates = None
        if gates is not None:
            self.gates = HardConcreteGates(
                (input_width + 1,), name="gates", **gates
            )

    def build(self, input_shape: Sequence[Any] | None = None) -> None:
        # PyTorch's default for a linear layer, as in the authors' code.
        limit = 1 / math.sqrt(self.input_width)
        uniform = initializers.random_uniform(limit)
        self.kernel = self.add_weight(
            (self.input_width, 1), uniform, name="kernel"
        )
        self.bias = self.add_weight((1,), uniform.clone(), name="bias")
        if self.gates is not None and not self.gates.built:
            self.gates.build(None)

    def call(
        self, inputs: Tensor, seeds: "StatelessSeeds | None" = None
    ) -> Tensor:
        return dense(inputs, *self.gated_weights(seeds))

    def gated_weights(
        self, seeds: "StatelessSeeds | None" = None
    ) -> tuple[Tensor, Tensor]:
        """Returns the kernel and the bias, each weight times its gate.

        If the layer has no gates, they are returned unchanged. `seeds` is as in
        the layer's call.
        """
        if self.gates is None:
            return self.kernel, self.bias
        gates = ops.cast(self.gates.call(seeds), self.kernel.dtype)
        return self.kernel * gates[:-1, None], self.bias * gates[-1:]
