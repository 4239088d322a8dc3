"""Invertible adapters: Pfeiffer et al. 2020 (MAD-X), arXiv:2005.00052."""

from collections.abc import Sequence
import dataclasses
from typing import Any

import keras
from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.layers import activations
from tf_adapters.layers.bottleneck import Bottleneck
from tf_adapters.layers.context import Context
from tf_adapters.layers.slot import Slot
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.registry import register
from tf_adapters.methods.support.bottleneck_slots import check_reduction_factor


@register("invertible")
@dataclasses.dataclass(frozen=True)
class Invertible(Method):
    """Transforms the embeddings with an invertible function.

    An embedding is split into halves `x_1` and `x_2`, which become
    `y_1 = x_1 + F(x_2)` and `y_2 = x_2 + G(y_1)`, where `F` and `G` are
    bottlenecks (section 3.2; NICE, Dinh et al. 2015). A masked language model
    applies the inverse before its output embeddings. A language adapter is the
    `Union` of this method and `Pfeiffer` or `Houlsby`.

    Attributes:
        reduction_factor: Ratio of half the encoder's width to the width of the
            bottlenecks; 2 in the `adapters` library.
        activation: Activation of the bottlenecks; ReLU in the library.

    Examples:
        >>> language = methods.Union((methods.Invertible(), methods.Pfeiffer()))
        >>> tuple(tf_adapters.adapt(encoder, language, head)(features).shape)
        (2, 2)
    """

    reduction_factor: float = 2.0
    activation: activations.Activation = "relu"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_reduction_factor(self.reduction_factor)

    def make_embedding_slots(self, shape: EncoderShape) -> dict[str, Slot]:
        """Returns a dict with the slot, whose place is `"embeddings"`."""
        units = max(1, int(shape.width // 2 // self.reduction_factor))
        return {
            "embeddings": Coupling(units, self.activation, name="invertible")
        }


@keras.saving.register_keras_serializable("tf_adapters")
class Coupling(Slot):
    """Slot that maps the halves `x_1`, `x_2` of each vector to `y_1`, `y_2`.

    `y_1` is `x_1 + F(x_2)`, and `y_2` is `x_2 + G(y_1)`; see `Invertible`. The
    width of the vectors must be even.

    Args:
        units: Integer. Width of the bottlenecks `F` and `G`.
        activation: Name of the activation of `F` and `G`. Defaults to `"relu"`.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self, units: int, activation: str = "relu", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.first = Bottleneck(units, activation, "normal", 0.02, name="first")
        self.second = Bottleneck(
            units, activation, "normal", 0.02, name="second"
        )

    def build(self, input_shape: Sequence[Any]) -> None:
        half = (*input_shape[:-1], input_shape[-1] // 2)
        for layer in (self.first, self.second):
            if not layer.built:
                layer.build(half)

    def call(
        self,
        x: Tensor,
        context: Context,
        training: bool | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        one, two = ops.split(x, 2, axis=-1)
        one = one + self.first(two)
        return ops.concatenate([one, two + self.second(one)], axis=-1), {}

    def inverse(self, y: Tensor) -> Tensor:
        """Returns the input `x` for which the slot's output is `y`."""
        one, two = ops.split(y, 2, axis=-1)
        two = two - self.second(one)
        return ops.concatenate([one - self.first(two), two], axis=-1)
