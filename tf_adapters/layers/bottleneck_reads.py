"""The input of a bottleneck that is attached after a sublayer."""

import typing

from tf_adapters.common.types import Tensor
from tf_adapters.layers.context import Context

# The sublayer's output before residual and norm, its output after residual and
# norm, or its input. Pre-norm blocks have no norm after a sublayer: there,
# "normed_output" is the same as "sublayer_output", and "residual" is the input
# before the norm that precedes the sublayer.
Reads = typing.Literal["sublayer_output", "normed_output", "residual"]


def read(name: str, x: Tensor, context: Context) -> Tensor:
    """Returns the tensor `name`, which a bottleneck reads as its input.

    It has the shape of `x`.

    Args:
        name: One of `Reads`.
        x: `(batch, tokens, width)` sublayer output, after its dropout.
        context: `Context`.
    """
    if name == "normed_output" and context.norm is not None:
        return context.norm(x + context.residual, context.adapter_rows)
    return context.residual if name == "residual" else x
