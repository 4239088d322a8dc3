"""Several adapters of one kind, stacked; each example uses one of them."""

import keras
from keras import ops

from tf_adapters.layers import activations
from tf_adapters.layers.float32_layer import Float32Layer


@keras.saving.register_keras_serializable("tf_adapters")
class BankBottleneck(Float32Layer):
    """`N` bottlenecks `W_up f(W_down x + b_down) + b_up`, one an example.

    The weights of each example's adapter are gathered, so that a batch is four
    operations whatever adapters it mixes. Nothing here trains.

    Args:
        num_adapters: Integer `N`.
        units: Integer. Width `m` of the widest; narrower ones are padded with
            zero rows in `up_kernel` (exact).
        activation: Name of `f`, that of all.

    Call arguments:
        inputs: `(batch, tokens, d)`.
        adapter_ids: `(batch,)` integers below `N`.

    Returns:
        `(batch, tokens, d)`.
    """

    def __init__(self, num_adapters, units, activation, **kwargs):
        super().__init__(**{"trainable": False, **kwargs})
        self.num_adapters = num_adapters
        self.units = units
        self._activation = activations.get_activation(activation)

    def build(self, input_shape):
        width, number = input_shape[-1], self.num_adapters
        for name, shape in (
            ("down_kernel", (number, width, self.units)),
            ("down_bias", (number, self.units)),
            ("up_kernel", (number, self.units, width)),
            ("up_bias", (number, width)),
        ):
            setattr(self, name, self.add_weight(shape, "zeros", name=name))

    def call(self, inputs, adapter_ids):
        def of_example(weight):
            chosen = ops.take(weight, adapter_ids, axis=0)
            return ops.cast(chosen, inputs.dtype)

        hidden = ops.matmul(inputs, of_example(self.down_kernel))
        hidden = hidden + of_example(self.down_bias)[:, None]
        hidden = self._activation(hidden)
        output = ops.matmul(hidden, of_example(self.up_kernel))
        return output + of_example(self.up_bias)[:, None]


@keras.saving.register_keras_serializable("tf_adapters")
class BankNorm(Float32Layer):
    """Scales and offsets of `N` layer norms; each example uses one pair.

    Args:
        num_adapters: Integer `N`.
    """

    def __init__(self, num_adapters, **kwargs):
        super().__init__(**{"trainable": False, **kwargs})
        self.num_adapters = num_adapters

    def build(self, input_shape):
        shape = (self.num_adapters, input_shape[-1])
        self.gammas = self.add_weight(shape, "ones", name="gammas")
        self.betas = self.add_weight(shape, "zeros", name="betas")

    def call(self, adapter_ids):
        """Returns gamma and beta for each example, `(batch, 1, d)` each."""
        return (
            ops.take(self.gammas, adapter_ids, axis=0)[:, None],
            ops.take(self.betas, adapter_ids, axis=0)[:, None],
        )


@keras.saving.register_keras_serializable("tf_adapters")
class BankHead(Float32Layer):
    """`N` linear heads on the first token, padded to the widest.

    Args:
        num_adapters: Integer `N`.
        num_outputs: Integer. Outputs of the widest head.

    Call arguments:
        inputs: `(batch, d)`.
        adapter_ids: `(batch,)` integers below `N`.

    Returns:
        `(batch, num_outputs)` float32; `-1e9` where an example's head is
        narrower, so that a softmax gives 0 there.
    """

    ABSENT = -1e9

    def __init__(self, num_adapters, num_outputs, **kwargs):
        super().__init__(**{"trainable": False, **kwargs})
        self.num_adapters = num_adapters
        self.num_outputs = num_outputs

    def build(self, input_shape):
        number, outputs = self.num_adapters, self.num_outputs
        self.kernel = self.add_weight(
            (number, input_shape[-1], outputs), "zeros", name="kernel"
        )
        self.bias = self.add_weight((number, outputs), "zeros", name="bias")

    @property
    def output_shape(self):
        """For Keras's `summary`."""
        return (None, self.num_outputs)

    def call(self, inputs, adapter_ids):
        inputs = ops.cast(inputs, "float32")
        kernel = ops.take(self.kernel, adapter_ids, axis=0)
        product = ops.matmul(inputs[:, None], kernel)[:, 0]
        return product + ops.take(self.bias, adapter_ids, axis=0)


def norm_weights(norm, adapter_ids):
    """Returns gamma and beta of a norm, or of each example's in a bank."""
    if isinstance(norm, BankNorm):
        return norm(adapter_ids)
    return norm.gamma, norm.beta
