"""The layers of heads: dropout, an optional dense layer, a linear layer."""

import typing
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers import activations
from tf_adapters.layers import initializers
from tf_adapters.layers.banks.bank_layer import Part
from tf_adapters.layers.banks.heads import BankHidden
from tf_adapters.layers.banks.heads import BankLinear
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.stateless_seeds import dropout

if TYPE_CHECKING:
    from tf_adapters.layers.stateless_seeds import StatelessSeeds

READS = ("first_token", "pooled_output")
HiddenLayer = typing.Literal["none", "tanh", "relu", "gelu"]


def width_of(input_shape: Any) -> int:
    """Returns the width of token vectors, for the `build` of a head's layer.

    Args:
        input_shape: Shape of `sequence_output`, or a dict that contains this
            shape under the name `sequence_output`.
    """
    if isinstance(input_shape, dict):
        input_shape = input_shape["sequence_output"]
    return input_shape[-1]


def hidden_options(head: Any) -> dict[str, Any]:
    """Returns a head's hidden-layer settings as arguments for its layer.

    Args:
        head: `Head` with `hidden_layer` and `hidden_dropout_rate`; see
            `TextHead`.

    Returns:
        Dict with `hidden_activation` and `hidden_dropout_rate`.
    """
    name = head.hidden_layer
    return {
        "hidden_activation": None if name == "none" else name,
        "hidden_dropout_rate": head.hidden_dropout_rate,
    }


class DropoutAndLinearLayer(Float32Layer):
    """Base class of layers that apply dropout and a linear layer.

    If `hidden_activation` is set, the layers first apply another dropout and a
    dense layer with as many units as the vectors have dimensions.

    Args:
        num_outputs: Integer. Width of the output.
        dropout_rate: Float. Rate of dropout before the linear layer in
            training.
        hidden_activation: Name of the activation of the dense layer, or `None`
            (default) for no dense layer.
        hidden_dropout_rate: Float. Rate of dropout before the dense layer in
            training. Defaults to 0.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self,
        num_outputs: int,
        dropout_rate: float,
        hidden_activation: str | None = None,
        hidden_dropout_rate: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_outputs = num_outputs
        self.dropout_rate = dropout_rate
        self.hidden_activation = hidden_activation
        self.hidden_dropout_rate = hidden_dropout_rate
        # Initial value of the bias of the linear layer.
        self.initial_bias = 0.0

    def build(self, input_shape: Any) -> None:
        width = width_of(input_shape)
        self.kernel, self.bias = self._add_dense(width, self.num_outputs)
        if self.hidden_activation is not None:
            self.hidden_kernel, self.hidden_bias = self._add_dense(
                width, width, "hidden_"
            )

    def _add_dense(
        self, width: int, num_outputs: int, start: str = ""
    ) -> tuple[keras.Variable, keras.Variable]:
        kernel = self.add_weight(
            (width, num_outputs),
            initializers.truncated_normal(0.02),
            name=f"{start}kernel",
        )
        value = 0.0 if start else self.initial_bias
        bias = self.add_weight(
            (num_outputs,),
            keras.initializers.Constant(value),
            name=f"{start}bias",
        )
        return kernel, bias

    @property
    def kernels_after_dropout(self) -> list[keras.Variable]:
        """The kernels whose inputs have dropout. Mixout applies to these."""
        hidden = [] if self.hidden_activation is None else [self.hidden_kernel]
        return [*hidden, self.kernel]

    def project(self, x: Tensor, seeds: "StatelessSeeds | None") -> Tensor:
        """Applies dropout and the dense and linear layers, in float32.

        Args:
            x: `(..., width)`.
            seeds: `StatelessSeeds` in training, else `None`.

        Returns:
            Tensor of shape `(..., num_outputs)`.
        """
        x = ops.cast(x, "float32")
        if self.hidden_activation is not None:
            x = dropout(x, self.hidden_dropout_rate, seeds)
            activation = activations.get_activation(self.hidden_activation)
            x = dense(x, self.hidden_kernel, self.hidden_bias, activation)
        x = dropout(x, self.dropout_rate, seeds)
        kernel = ops.convert_to_tensor(self.kernel, "float32")
        return dense(x, kernel, ops.convert_to_tensor(self.bias, "float32"))


@keras.saving.register_keras_serializable("tf_adapters")
class LinearLayer(DropoutAndLinearLayer):
    """Maps one vector for each text to `num_outputs` numbers.

    Args:
        num_outputs: Integer. Width of the output.
        reads: Vector to map: `"first_token"` (Houlsby et al. 2019, section 3.1)
            or `"pooled_output"`, from the checkpoint's pooler.
        dropout_rate: See `DropoutAndLinearLayer`.
        hidden_activation: See `DropoutAndLinearLayer`.
        hidden_dropout_rate: See `DropoutAndLinearLayer`.
        **kwargs: See `keras.layers.Layer`.

    Returns:
        Float32 tensor of shape `(batch, num_outputs)`.
    """

    def __init__(
        self,
        num_outputs: int,
        reads: str,
        dropout_rate: float,
        hidden_activation: str | None = None,
        hidden_dropout_rate: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            num_outputs,
            dropout_rate,
            hidden_activation,
            hidden_dropout_rate,
            **kwargs,
        )
        check_reads(reads)
        self.reads = reads

    @property
    def output_shape(self) -> tuple[None, int]:
        """The output shape that Keras's `summary` prints."""
        return (None, self.num_outputs)

    def call(
        self, outputs: dict[str, Tensor], seeds: "StatelessSeeds | None" = None
    ) -> Tensor:
        is_first = self.reads == "first_token"
        name = "first_token_output" if is_first else "pooled_output"
        return self.project(outputs[name], seeds)


def bank_parts(layer: Any, reads: str) -> list[Part]:
    """Returns a layer's weights in the form in which a bank stores them.

    The list has a `Part` for the linear layer, and one for the dense layer if
    there is one. A bank is a model with many adapters.

    Args:
        layer: `DropoutAndLinearLayer`.
        reads: Name of the encoder's output that the head reads; see `Head`.

    Raises:
        UserError: If the layer is of another class.
    """
    if not isinstance(layer, DropoutAndLinearLayer):
        raise UserError(
            f"The head's layer, a {type(layer).__name__}, is not a "
            "`DropoutAndLinearLayer`, so the head needs a `bank_parts`."
        )
    arrays = {"kernel": layer.kernel, "bias": layer.bias}
    parts = [BankLinear.part(arrays, reads=reads)]
    if layer.hidden_activation is not None:
        arrays = {"kernel": layer.hidden_kernel, "bias": layer.hidden_bias}
        hidden = BankHidden.part(
            arrays, reads=reads, activation=layer.hidden_activation
        )
        parts.append(hidden)
    return parts


def check_reads(reads: str) -> None:
    """Raises a `UserError` unless `reads` is one of the names in `READS`."""
    check_known("reads", reads, READS)


# The earlier name of `LinearLayer`, which custom heads may still use.
LinearHead = LinearLayer
