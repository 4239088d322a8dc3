"""Pools the vectors of a text's tokens into one vector."""

import typing

from keras import ops

from tf_adapters.common.types import Tensor

TokenPooling = typing.Literal["mean", "first_token"]
TOKEN_POOLINGS = typing.get_args(TokenPooling)


def pool_tokens(
    outputs: dict[str, Tensor], padding_mask: Tensor, pooling: str
) -> Tensor:
    """Returns a float32 vector for each sequence, `(sequences, width)`.

    Args:
        outputs: Dict that `AdaptedEncoder` returns.
        padding_mask: `(sequences, tokens)`. A sequence without tokens, such as
            a padding window, has the mean 0.
        pooling: `"mean"` over the tokens, or `"first_token"`.
    """
    if pooling == "first_token":
        return ops.cast(outputs["first_token_output"], "float32")
    mask = ops.cast(padding_mask, "float32")[..., None]
    vectors = ops.cast(outputs["sequence_output"], "float32")
    counts = ops.maximum(ops.sum(mask, axis=1), 1.0)
    return ops.sum(vectors * mask, axis=1) / counts
