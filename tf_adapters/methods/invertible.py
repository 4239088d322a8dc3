"""Invertible adapters: Pfeiffer et al. 2020 (MAD-X), arXiv:2005.00052."""

import dataclasses

import keras
from keras import ops

from tf_adapters.layers import activations
from tf_adapters.layers.bottleneck import Bottleneck
from tf_adapters.layers.slot import Slot
from tf_adapters.methods.method import Method
from tf_adapters.methods.method import register
from tf_adapters.methods.support.bottleneck_slots import check_reduction_factor


@register("invertible")
@dataclasses.dataclass(frozen=True)
class Invertible(Method):
    """A map of the embeddings that can be undone before the vocabulary.

    Of the halves `x_1`, `x_2` of an embedding it makes `y_1 = x_1 + F(x_2)` and
    `y_2 = x_2 + G(y_1)` (section 3.2; NICE, Dinh et al. 2015), with `F` and `G`
    bottlenecks. Half of a language adapter; the other half is `Pfeiffer` or
    `Houlsby`, joined by `Union`.

    Attributes:
        reduction_factor: Half the width over that of the bottlenecks; 2 in the
            `adapters` library.
        activation: ReLU in the library.

    Examples:
        >>> language = methods.Union((methods.Invertible(), methods.Pfeiffer()))
        >>> tuple(tf_adapters.adapt(encoder, language, head)(features).shape)
        (2, 2)
    """

    reduction_factor: float = 2.0
    activation: activations.Activation = "relu"

    def __post_init__(self):
        super().__post_init__()
        check_reduction_factor(self.reduction_factor)

    def make_embedding_slots(self, shape):
        """Returns the map of the embeddings."""
        units = max(1, int(shape.width // 2 // self.reduction_factor))
        return {
            "embeddings": Coupling(units, self.activation, name="invertible")
        }


@keras.saving.register_keras_serializable("tf_adapters")
class Coupling(Slot):
    """Slot `(x_1 + F(x_2), x_2 + G(x_1 + F(x_2)))` of a vector's halves.

    Args:
        units: Integer. Width of the bottlenecks `F` and `G`.
        activation: Name of their activation.

    Call arguments:
        x: `(batch, tokens, width)`, an even width.

    Returns:
        A tensor of the shape of `x`, and no probes.
    """

    def __init__(self, units, activation="relu", **kwargs):
        super().__init__(**kwargs)
        self.first = Bottleneck(units, activation, "normal", 0.02, name="first")
        self.second = Bottleneck(
            units, activation, "normal", 0.02, name="second"
        )

    def build(self, input_shape):
        half = (*input_shape[:-1], input_shape[-1] // 2)
        for layer in (self.first, self.second):
            if not layer.built:
                layer.build(half)

    def call(self, x, context=None, training=None):
        one, two = ops.split(x, 2, axis=-1)
        one = one + self.first(two)
        return ops.concatenate([one, two + self.second(one)], axis=-1), {}

    def inverse(self, y):
        """Returns the `x` of which a call makes `y`."""
        one, two = ops.split(y, 2, axis=-1)
        two = two - self.second(one)
        return ops.concatenate([one - self.first(two), two], axis=-1)
