"""Dropout and a linear layer, on one vector for each text."""

import keras
from keras import ops

from tf_adapters.common.suggestions import check_known
from tf_adapters.layers.dense import dense
from tf_adapters.layers.stateless_seeds import dropout

READS = ("first_token", "pooled_output")
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


class DropoutAndLinear(keras.layers.Layer):
    """What the heads of texts and of tokens have in common.

    Args:
        num_outputs: Integer. Width of the output.
        dropout_rate: Float. Dropout on what is read, in training.
    """

    def __init__(self, num_outputs, dropout_rate, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.num_outputs = num_outputs
        self.dropout_rate = dropout_rate

    def build(self, input_shape):
        self.kernel = self.add_weight(
            (width_of(input_shape), self.num_outputs),
            keras.initializers.TruncatedNormal(stddev=0.02),
            name="kernel",
        )
        self.bias = self.add_weight((self.num_outputs,), "zeros", name="bias")

    @property
    def kernel_after_dropout(self):
        """What mixout mixes in place of the dropout before it."""
        return self.kernel

    def project(self, x, seeds):
        """Returns `(..., num_outputs)` in float32 from `(..., width)`."""
        x = dropout(ops.cast(x, "float32"), self.dropout_rate, seeds)
        kernel = ops.convert_to_tensor(self.kernel, "float32")
        return dense(x, kernel, ops.convert_to_tensor(self.bias, "float32"))

    def get_config(self):
        return {
            **super().get_config(),
            "num_outputs": self.num_outputs,
            "dropout_rate": self.dropout_rate,
        }


@keras.saving.register_keras_serializable("tf_adapters")
class LinearHead(DropoutAndLinear):
    """Reads one vector for each text and maps it to `num_outputs` numbers.

    Args:
        num_outputs: Integer. Width of the output.
        reads: `"first_token"` (Houlsby et al. 2019, section 3.1) or
            `"pooled_output"`, the checkpoint's own pooler.
        dropout_rate: Float. Dropout on what is read, in training.

    Call arguments:
        outputs: Dict that `AdaptedEncoder` returns.
        seeds: `StatelessSeeds` in training, else `None`.

    Returns:
        Float32 tensor of shape `(batch, num_outputs)`.
    """

    def __init__(self, num_outputs, reads, dropout_rate, **kwargs):
        super().__init__(num_outputs, dropout_rate, **kwargs)
        check_reads(reads)
        self.reads = reads

    def call(self, outputs, seeds=None):
        if self.reads == "first_token":
            return self.project(outputs["first_token_output"], seeds)
        return self.project(outputs["pooled_output"], seeds)

    def get_config(self):
        return {**super().get_config(), "reads": self.reads}


def check_reads(reads):
    """Raises a `UserError` if no head can read what `reads` names."""
    check_known("reads", reads, READS)
