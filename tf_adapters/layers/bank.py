"""Stacks of adapters of one kind. Each example uses one adapter."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.layers import activations
from tf_adapters.layers.float32_layer import Float32Layer


@keras.saving.register_keras_serializable("tf_adapters")
class BankBottleneck(Float32Layer):
    """Applies one of `N` bottlenecks to each example.

    A bottleneck computes `W_up f(W_down x + b_down) + b_up`. The layer gathers
    the weights of each example's adapter, so a batch takes the same few
    operations regardless of which adapters it mixes. The weights do not train.

    Args:
        num_adapters: Integer. Number `N` of adapters.
        units: Integer. Bottleneck width `m` of the widest adapter. Narrower
            ones are padded with zero rows in `up_kernel`, which does not change
            their outputs.
        activation: Name of `f`, the same for all adapters.
        **kwargs: See `keras.layers.Layer`.

    Call arguments:
        inputs: `(batch, tokens, d)`.
        adapter_ids: `(batch,)` integers in `[0, N)`.

    Returns:
        `(batch, tokens, d)`.
    """

    def __init__(
        self, num_adapters: int, units: int, activation: str, **kwargs: Any
    ) -> None:
        super().__init__(**{"trainable": False, **kwargs})
        self.num_adapters = num_adapters
        self.units = units
        self._activation = activations.get_activation(activation)

    def build(self, input_shape: Sequence[Any]) -> None:
        width, number = input_shape[-1], self.num_adapters
        for name, shape in (
            ("down_kernel", (number, width, self.units)),
            ("down_bias", (number, self.units)),
            ("up_kernel", (number, self.units, width)),
            ("up_bias", (number, width)),
        ):
            setattr(self, name, self.add_weight(shape, "zeros", name=name))

    def call(self, inputs: Tensor, adapter_ids: Tensor) -> Tensor:
        def of_example(weight: Tensor) -> Tensor:
            chosen = ops.take(weight, adapter_ids, axis=0)
            return ops.cast(chosen, inputs.dtype)

        hidden = ops.matmul(inputs, of_example(self.down_kernel))
        hidden = hidden + of_example(self.down_bias)[:, None]
        hidden = self._activation(hidden)
        output = ops.matmul(hidden, of_example(self.up_kernel))
        return output + of_example(self.up_bias)[:, None]


@keras.saving.register_keras_serializable("tf_adapters")
class BankNorm(Float32Layer):
    """Holds the scales and offsets of `N` layer norms.

    Each example uses one of the norms. The weights do not train.

    Args:
        num_adapters: Integer. Number `N` of norms.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(self, num_adapters: int, **kwargs: Any) -> None:
        super().__init__(**{"trainable": False, **kwargs})
        self.num_adapters = num_adapters

    def build(self, input_shape: Sequence[Any]) -> None:
        shape = (self.num_adapters, input_shape[-1])
        self.gammas = self.add_weight(shape, "ones", name="gammas")
        self.betas = self.add_weight(shape, "zeros", name="betas")

    def call(self, adapter_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Returns gamma and beta of each example, each `(batch, 1, d)`."""
        return (
            ops.take(self.gammas, adapter_ids, axis=0)[:, None],
            ops.take(self.betas, adapter_ids, axis=0)[:, None],
        )


@keras.saving.register_keras_serializable("tf_adapters")
class BankHead(Float32Layer):
    """Applies one of `N` linear heads to each example.

    The heads are padded to the widest one. The weights do not train.

    Args:
        num_adapters: Integer. Number `N` of heads.
        num_outputs: Integer. Number of outputs of the widest head.
        **kwargs: See `keras.layers.Layer`.

    Call arguments:
        inputs: `(batch, d)`. Vectors of the first tokens.
        adapter_ids: `(batch,)` integers in `[0, N)`.

    Returns:
        `(batch, num_outputs)` float32. Outputs that an example's head does not
        have are `-1e9`, so a softmax makes them 0.
    """

    ABSENT = -1e9

    def __init__(
        self, num_adapters: int, num_outputs: int, **kwargs: Any
    ) -> None:
        super().__init__(**{"trainable": False, **kwargs})
        self.num_adapters = num_adapters
        self.num_outputs = num_outputs

    def build(self, input_shape: Sequence[Any]) -> None:
        number, outputs = self.num_adapters, self.num_outputs
        self.kernel = self.add_weight(
            (number, input_shape[-1], outputs), "zeros", name="kernel"
        )
        self.bias = self.add_weight((number, outputs), "zeros", name="bias")

    @property
    def output_shape(self) -> tuple[None, int]:
        """For Keras's `summary`."""
        return (None, self.num_outputs)

    def call(self, inputs: Tensor, adapter_ids: Tensor) -> Tensor:
        inputs = ops.cast(inputs, "float32")
        kernel = ops.take(self.kernel, adapter_ids, axis=0)
        product = ops.matmul(inputs[:, None], kernel)[:, 0]
        return product + ops.take(self.bias, adapter_ids, axis=0)


def norm_weights(
    norm: keras.layers.LayerNormalization | BankNorm, adapter_ids: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Returns gamma and beta of a layer norm.

    Args:
        norm: Layer norm, or a `BankNorm` with a norm for each adapter.
        adapter_ids: `(batch,)` integers. Used only with a `BankNorm`.
    """
    if isinstance(norm, BankNorm):
        return norm(adapter_ids)
    return norm.gamma, norm.beta
