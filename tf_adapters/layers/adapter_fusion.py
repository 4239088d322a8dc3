"""AdapterFusion: attention of each token over several frozen adapters."""

from collections.abc import Sequence
import math
import typing
from typing import Any

import keras
from keras import ops

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers import activations
from tf_adapters.layers import initializers
from tf_adapters.layers.attention import softmax
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer

FusionValue = typing.Literal["dynamic", "static"]
FusionStart = typing.Literal["constant", "random"]


@keras.saving.register_keras_serializable("tf_adapters")
class AdapterFusion(Float32Layer):
    """Mixes the outputs of `N` bottleneck adapters by attention of each token.

    Let `z_n = U_n a_n + b_n` be the output of adapter `n`, where `a_n` is its
    bottleneck's activation. Let `q` be the query of a token. Then

        p = softmax_n(z_n . K^T q),  fused = V sum_n p_n z_n

    (Pfeiffer et al. 2021, arXiv:2005.00247, section 3.2). The keys have no
    bias, because it would cancel in the softmax.

    The layer never computes the vectors `z_n`. The logits are
    `a_n . U_n^T g + b_n . g` with `g = K^T q`, and the sum is one matrix
    multiplication of all `p_n a_n` by all `U_n`. Memory therefore grows with
    `N m` instead of `N d`. In addition to the adapters, each token is
    multiplied by three matrices of shape `(d, d)`, for any `N`. In training,
    the weight matrices are multiplied by each other first, so tokens are not
    multiplied by these three. Evaluation in float32 does the same if there are
    more than `N m` tokens.

    The adapters' weights are frozen. The fusion trains `3 d^2 + d` weights, or
    `2 d^2 + d` if `value` is `"static"`.

    Args:
        num_adapters: Integer, at least 1. Number `N` of adapters.
        units: Integer. Bottleneck width `m` of the widest adapter. Narrower
            ones are padded with zero rows in `up_kernel`, which does not change
            their outputs.
        activation: Name of the bottlenecks' activation.
        value: `"dynamic"` (default) if `V` trains, or `"static"` if `V` is the
            identity. A trained `V` starts close to the identity (section 4.1).
        value_start: Initial values of `V` off the diagonal: `"constant"`
            (default) for 1e-6, or `"random"` for normal numbers with standard
            deviation 1e-6.
        **kwargs: See `keras.layers.Layer`.

    Call arguments:
        inputs: `(batch, tokens, d)`. Input of the adapters and the query.
        chosen: Indices of the adapters to use, integers of shape `(k,)`. Other
            adapters are not computed. `None` (default) uses all.
        training: Boolean. Affects only the order of the multiplications.

    Returns:
        `fused` of shape `(batch, tokens, d)` and the weights `p` of shape
        `(batch, tokens, N)`, or `(batch, tokens, k)` with `chosen`.

    Raises:
        UserError: If an argument is out of its range.
    """

    def __init__(
        self,
        num_adapters: int,
        units: int,
        activation: str,
        value: str = "dynamic",
        value_start: str = "constant",
        **kwargs: Any,
    ) -> None:
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

    def build(self, input_shape: Sequence[Any]) -> None:
        width, stacked = input_shape[-1], self.num_adapters * self.units

        def frozen(shape: tuple[int, ...], name: str) -> keras.Variable:
            return self.add_weight(shape, "zeros", name=name, trainable=False)

        self.down_kernel = frozen((width, stacked), "down_kernel")
        self.down_bias = frozen((stacked,), "down_bias")
        self.up_kernel = frozen((stacked, width), "up_kernel")
        self.up_bias = frozen((self.num_adapters, width), "up_bias")
        # As in the authors' library. The paper specifies only how `V` starts.
        normal = initializers.random_normal(0.02)
        self.query_kernel = self.add_weight(
            (width, width), normal, name="query_kernel"
        )
        self.query_bias = self.add_weight((width,), "zeros", name="query_bias")
        self.key_kernel = self.add_weight(
            (width, width), normal.clone(), name="key_kernel"
        )
        if self.value == "dynamic":
            self.value_kernel = self.add_weight(
                (width, width), self._start_of_value, name="value_kernel"
            )

    def _start_of_value(
        self, shape: tuple[int, ...], dtype: str | None = None
    ) -> Tensor:
        off_diagonal = 1e-6
        if self.value_start == "random":
            off_diagonal *= keras.random.normal(shape, dtype=dtype)
        eye = ops.eye(shape[0], dtype=dtype)
        return eye + off_diagonal * (1 - eye)

    def call(
        self,
        inputs: Tensor,
        chosen: Tensor | None = None,
        training: bool | None = None,
    ) -> tuple[Tensor, Tensor]:
        down_kernel, down_bias, *up = self._stacks(chosen)
        activation = dense(inputs, down_kernel, down_bias, self._activation)
        arguments = (inputs, activation, *up)
        # Training batches are large enough for this order. A `cond` would also
        # hold the tensors for the gradient longer than operations outside it.
        if training:
            return self._weights_first(*arguments)
        # The two orders round differently in half precision: if the batch size
        # chose between them, a text's result would depend on its batch.
        if keras.backend.standardize_dtype(inputs.dtype) in activations.HALF:
            return self._tokens_first(*arguments)
        return ops.cond(
            math.prod(ops.shape(inputs)[:-1]) > activation.shape[-1],
            lambda: self._weights_first(*arguments),
            lambda: self._tokens_first(*arguments),
        )

    def _tokens_first(
        self,
        inputs: Tensor,
        activation: Tensor,
        up_kernel: Tensor,
        up_bias: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Computes `call` by multiplying tokens by each matrix in turn."""
        query = dense(inputs, self.query_kernel, self.query_bias)
        key_query = dense(query, ops.transpose(self.key_kernel))
        seen = dense(key_query, ops.transpose(up_kernel))
        biases = dense(key_query, ops.transpose(up_bias))
        weights = self._weights(activation, seen, biases)
        mixed = self._mix(activation, weights, up_kernel, up_bias)
        if self.value == "dynamic":
            mixed = dense(mixed, self.value_kernel)
        return mixed, weights

    def _weights_first(
        self,
        inputs: Tensor,
        activation: Tensor,
        up_kernel: Tensor,
        up_bias: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Computes `call`, but first multiplies the weights by each other.

        The outputs equal those of `_tokens_first` up to rounding. Tokens are
        not multiplied by a matrix of shape `(d, d)`, but every call multiplies
        all the weights.
        """

        def query(up: Tensor) -> Tensor:
            keys = ops.transpose(ops.matmul(up, self.key_kernel))
            kernel = ops.matmul(self.query_kernel, keys)
            return dense(inputs, kernel, ops.matmul(self.query_bias, keys))

        weights = self._weights(activation, query(up_kernel), query(up_bias))
        if self.value == "dynamic":
            up_kernel = ops.matmul(up_kernel, self.value_kernel)
            up_bias = ops.matmul(up_bias, self.value_kernel)
        return self._mix(activation, weights, up_kernel, up_bias), weights

    def _stacks(self, chosen: Tensor | None) -> Sequence[Tensor]:
        """Returns the stacked weights of all adapters, or only of `chosen`."""
        stacks = (
            self.down_kernel,
            self.down_bias,
            self.up_kernel,
            self.up_bias,
        )
        if chosen is None:
            return stacks
        drawn = ops.cast(chosen, "int32")
        columns = drawn[:, None] * self.units + ops.arange(self.units)
        columns = ops.reshape(columns, (-1,))
        indices = (columns, columns, columns, drawn)
        return [
            ops.take(stack, place, axis=axis)
            for stack, place, axis in zip(
                stacks, indices, (1, 0, 0, 0), strict=True
            )
        ]

    def _weights(
        self, activation: Tensor, seen: Tensor, biases: Tensor
    ) -> Tensor:
        """Returns the attention weights `p` of the adapters for each token.

        The arguments are `a_n`, `U_n^T g` and `b_n . g` of all adapters.
        """
        products = self._by_adapter(activation * seen)
        return softmax(ops.sum(products, axis=-1) + biases)

    def _mix(
        self,
        activation: Tensor,
        weights: Tensor,
        up_kernel: Tensor,
        up_bias: Tensor,
    ) -> Tensor:
        """Returns `sum_n p_n z_n`, of shape `(batch, tokens, d)`."""
        weighted = self._by_adapter(activation) * ops.expand_dims(weights, -1)
        weighted = ops.reshape(weighted, ops.shape(activation))
        return dense(weighted, up_kernel) + dense(weights, up_bias)

    def _by_adapter(self, activation: Tensor) -> Tensor:
        count = activation.shape[-1] // self.units
        shape = (*ops.shape(activation)[:-1], count, self.units)
        return ops.reshape(activation, shape)

    def pull_to_identity(self) -> Tensor:
        """Returns `sum (V - I)^2` of the value matrix `V`; 0 if it is fixed."""
        if self.value == "static":
            return ops.zeros(())
        kernel = ops.convert_to_tensor(self.value_kernel, "float32")
        return ops.sum(ops.square(kernel - ops.eye(kernel.shape[0])))
