"""AdapterFusion: attention of each token over several frozen adapters."""

import math
import typing

import keras
from keras import ops

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.layers import activations
from tf_adapters.layers.attention import softmax
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer

FusionValue = typing.Literal["dynamic", "static"]
FusionStart = typing.Literal["constant", "random"]


@keras.saving.register_keras_serializable("tf_adapters")
class AdapterFusion(Float32Layer):
    """Mixes the outputs of `N` bottleneck adapters, a weight for each token.

    With `z_n = U_n a_n + b_n` the output of adapter `n`, `a_n` its bottleneck's
    activation and `q` the query of a token,

        p = softmax_n(z_n . K^T q),  fused = V sum_n p_n z_n

    (Pfeiffer et al. 2021, arXiv:2005.00247, section 3.2; the sign of a key bias
    cancels in the softmax, so there is none). The `N` vectors `z_n` are never
    made: the logits are `a_n . U_n^T g + b_n . g` with `g = K^T q`, and the sum
    is one product of all `p_n a_n` with all `U_n`. Memory grows with `N m`
    instead of `N d`. Beyond the adapters, each token costs three products of
    `d x d` whatever `N` is; in training, and where tokens outnumber the `N m`
    units, none: the weights are multiplied with each other instead.

    The adapters' weights are frozen, the fusion's train: `3 d^2 + d`, or
    `2 d^2 + d` where the value is static.

    Args:
        num_adapters: Integer `N`, at least 1.
        units: Integer. Bottleneck width `m` of the widest adapter; narrower
            ones are padded with zero rows in `up_kernel` (exact).
        activation: Name of the bottlenecks' activation.
        value: `"dynamic"` (default): `V` trains, from the identity with 1e-6
            beside the diagonal (section 4.1); `"static"`: `V` is the identity.
        value_start: What 1e-6 is: the `"constant"` (default) beside the
            diagonal, or the deviation of `"random"` normal numbers there.

    Call arguments:
        inputs: `(batch, tokens, d)`: what the adapters and the query read.
        chosen: Integers of shape `(k,)`, or `None` (default) for all: the
            adapters that take part. The others are not computed.
        training: Boolean. Changes the order of the products alone.

    Returns:
        `fused` of shape `(batch, tokens, d)` and the weights `p` of shape
        `(batch, tokens, N)`, or `(batch, tokens, k)`.
    """

    def __init__(
        self,
        num_adapters,
        units,
        activation,
        value="dynamic",
        value_start="constant",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_adapters < 1:
            raise UserError(
                "Invalid value for argument `num_adapters`: there must be at "
                f"least one. Received: num_adapters={num_adapters}"
            )
        check_known("value", value, typing.get_args(FusionValue))
        check_known("value_start", value_start, typing.get_args(FusionStart))
        self.value_start = value_start
        self.num_adapters = num_adapters
        self.units = units
        self.activation = activation
        self.value = value
        self._activation = activations.get_activation(activation)

    def build(self, input_shape):
        width, stacked = input_shape[-1], self.num_adapters * self.units

        def frozen(shape, name):
            return self.add_weight(shape, "zeros", name=name, trainable=False)

        self.down_kernel = frozen((width, stacked), "down_kernel")
        self.down_bias = frozen((stacked,), "down_bias")
        self.up_kernel = frozen((stacked, width), "up_kernel")
        self.up_bias = frozen((self.num_adapters, width), "up_bias")
        # As in the authors' library; the paper gives only V's start.
        normal = keras.initializers.RandomNormal(stddev=0.02)
        self.query_kernel = self.add_weight(
            (width, width), normal, name="query_kernel"
        )
        self.query_bias = self.add_weight((width,), "zeros", name="query_bias")
        self.key_kernel = self.add_weight(
            (width, width), normal, name="key_kernel"
        )
        if self.value == "dynamic":
            self.value_kernel = self.add_weight(
                (width, width), self._start_of_value, name="value_kernel"
            )

    def _start_of_value(self, shape, dtype=None):
        beside = 1e-6
        if self.value_start == "random":
            beside *= keras.random.normal(shape, dtype=dtype)
        eye = ops.eye(shape[0], dtype=dtype)
        return eye + beside * (1 - eye)

    def call(self, inputs, chosen=None, training=None):
        down_kernel, down_bias, *up = self._stacks(chosen)
        activation = dense(inputs, down_kernel, down_bias, self._activation)
        arguments = (inputs, activation, *up)
        # A batch of training is large; and a branch keeps what its gradient
        # needs longer than the same operations outside one.
        if training:
            return self._weights_first(*arguments)
        # Rounded, an answer would depend on the texts beside it.
        if keras.backend.standardize_dtype(inputs.dtype) in activations.HALF:
            return self._tokens_first(*arguments)
        return ops.cond(
            math.prod(ops.shape(inputs)[:-1]) > activation.shape[-1],
            lambda: self._weights_first(*arguments),
            lambda: self._tokens_first(*arguments),
        )

    def _tokens_first(self, inputs, activation, up_kernel, up_bias):
        """Multiplies tokens by one weight after the other."""
        query = dense(inputs, self.query_kernel, self.query_bias)
        key_query = dense(query, ops.transpose(self.key_kernel))
        seen = dense(key_query, ops.transpose(up_kernel))
        biases = dense(key_query, ops.transpose(up_bias))
        weights = self._weights(activation, seen, biases)
        mixed = self._mix(activation, weights, up_kernel, up_bias)
        if self.value == "dynamic":
            mixed = dense(mixed, self.value_kernel)
        return mixed, weights

    def _weights_first(self, inputs, activation, up_kernel, up_bias):
        """Multiplies the weights with each other, and tokens by what results.

        The same outputs up to rounding. No product of `d x d` is left for the
        tokens, but all the weights are multiplied at each call.
        """

        def query(up):
            keys = ops.transpose(ops.matmul(up, self.key_kernel))
            kernel = ops.matmul(self.query_kernel, keys)
            return dense(inputs, kernel, ops.matmul(self.query_bias, keys))

        weights = self._weights(activation, query(up_kernel), query(up_bias))
        if self.value == "dynamic":
            up_kernel = ops.matmul(up_kernel, self.value_kernel)
            up_bias = ops.matmul(up_bias, self.value_kernel)
        return self._mix(activation, weights, up_kernel, up_bias), weights

    def _stacks(self, chosen):
        """Returns the adapters' stacked weights, or those of some of them."""
        stacks = (
            self.down_kernel,
            self.down_bias,
            self.up_kernel,
            self.up_bias,
        )
        if chosen is None:
            return stacks
        chosen = ops.cast(chosen, "int32")
        columns = chosen[:, None] * self.units + ops.arange(self.units)
        columns = ops.reshape(columns, (-1,))
        indices = (columns, columns, columns, chosen)
        return [
            ops.take(stack, place, axis=axis)
            for stack, place, axis in zip(
                stacks, indices, (1, 0, 0, 0), strict=True
            )
        ]

    def _weights(self, activation, seen, biases):
        """Returns `p` from `a_n`, `U_n^T g` and `b_n . g`."""
        products = self._by_adapter(activation * seen)
        return softmax(ops.sum(products, axis=-1) + biases)

    def _mix(self, activation, weights, up_kernel, up_bias):
        """Returns `sum_n p_n z_n`, of shape `(batch, tokens, d)`."""
        weighted = self._by_adapter(activation) * weights[..., None]
        weighted = ops.reshape(weighted, ops.shape(activation))
        return dense(weighted, up_kernel) + dense(weights, up_bias)

    def _by_adapter(self, activation):
        count = activation.shape[-1] // self.units
        shape = (*ops.shape(activation)[:-1], count, self.units)
        return ops.reshape(activation, shape)

    def pull_to_identity(self):
        """Returns `sum (V - I)^2`, a scalar; 0 where the value is static."""
        if self.value == "static":
            return ops.zeros(())
        kernel = ops.convert_to_tensor(self.value_kernel, "float32")
        return ops.sum(ops.square(kernel - ops.eye(kernel.shape[0])))
