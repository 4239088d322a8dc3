"""Dropout and a linear layer, on one vector for each text."""

import typing

import keras
from keras import ops

from tf_adapters.common.checks import check_known
from tf_adapters.layers import activations
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.stateless_seeds import dropout

READS = ("first_token", "pooled_output")
HiddenLayer = typing.Literal["none", "tanh", "relu", "gelu"]
# The output for what is not there: padding, or a choice of other questions.
ABSENT = -1e9


def width_of(input_shape):
    """Returns the width of token vectors, for a head's `build`.

    Args:
        input_shape: Shape of `sequence_output`, or a dict with it.
    """
    if isinstance(input_shape, dict):
        input_shape = input_shape["sequence_output"]
    return input_shape[-1]


def hidden_options(head):
    """Returns a head's hidden layer as its layer's constructor takes it.

    Args:
        head: `Head` with the settings of `TextHead`'s hidden layer.
    """
    name = head.hidden_layer
    return {
        "hidden_activation": None if name == "none" else name,
        "hidden_dropout_rate": head.hidden_dropout_rate,
    }


class DropoutAndLinearLayer(Float32Layer):
    """What the heads of texts and of tokens have in common.

    With `hidden_activation` there is a dense layer of the vectors' own width
    before the linear one, behind a dropout of its own.

    Args:
        num_outputs: Integer. Width of the output.
        dropout_rate: Float. Dropout before the linear layer, in training.
        hidden_activation: Name of an activation, or `None` (default).
        hidden_dropout_rate: Float. Dropout before the dense layer. Defaults
            to 0.
    """

    def __init__(
        self,
        num_outputs,
        dropout_rate,
        hidden_activation=None,
        hidden_dropout_rate=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_outputs = num_outputs
        self.dropout_rate = dropout_rate
        self.hidden_activation = hidden_activation
        self.hidden_dropout_rate = hidden_dropout_rate

    def build(self, input_shape):
        width = width_of(input_shape)
        self.kernel, self.bias = self._add_dense(width, self.num_outputs)
        if self.hidden_activation is not None:
            self.hidden_kernel, self.hidden_bias = self._add_dense(
                width, width, "hidden_"
            )

    def _add_dense(self, width, num_outputs, start=""):
        kernel = self.add_weight(
            (width, num_outputs),
            keras.initializers.TruncatedNormal(stddev=0.02),
            name=f"{start}kernel",
        )
        bias = self.add_weight((num_outputs,), "zeros", name=f"{start}bias")
        return kernel, bias

    @property
    def kernel_after_dropout(self):
        """What mixout mixes; nothing where two dropouts come after another."""
        return self.kernel if self.hidden_activation is None else None

    def project(self, x, seeds):
        """Returns `(..., num_outputs)` in float32 from `(..., width)`."""
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
    """Reads one vector for each text and maps it to `num_outputs` numbers.

    Args:
        num_outputs: Integer. Width of the output.
        reads: `"first_token"` (Houlsby et al. 2019, section 3.1) or
            `"pooled_output"`, the checkpoint's own pooler.
        dropout_rate: See `DropoutAndLinearLayer`.
        hidden_activation: See `DropoutAndLinearLayer`.
        hidden_dropout_rate: See `DropoutAndLinearLayer`.

    Call arguments:
        outputs: Dict that `AdaptedEncoder` returns.
        seeds: `StatelessSeeds` in training, else `None`.

    Returns:
        Float32 tensor of shape `(batch, num_outputs)`.
    """

    def __init__(
        self,
        num_outputs,
        reads,
        dropout_rate,
        hidden_activation=None,
        hidden_dropout_rate=0.0,
        **kwargs,
    ):
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
    def output_shape(self):
        """For Keras's `summary`."""
        return (None, self.num_outputs)

    def call(self, outputs, seeds=None):
        is_first = self.reads == "first_token"
        name = "first_token_output" if is_first else "pooled_output"
        return self.project(outputs[name], seeds)


def check_reads(reads):
    """Raises a `UserError` if no head can read what `reads` names."""
    check_known("reads", reads, READS)


# The earlier name, which heads of a user's own may have.
LinearHead = LinearLayer
