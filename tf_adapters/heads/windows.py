"""Pooling of the outputs of a long text's windows into one output."""

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.heads.linear import LinearLayer
from tf_adapters.layers.banks.heads import ABSENT

if TYPE_CHECKING:
    from tf_adapters.heads.head import Head
    from tf_adapters.layers.stateless_seeds import StatelessSeeds


@keras.saving.register_keras_serializable("tf_adapters")
class WindowsLayer(LinearLayer):
    """A `LinearLayer` whose outputs for a text's windows are pooled.

    Args:
        num_outputs: See `LinearLayer`.
        reads: See `LinearLayer`.
        dropout_rate: See `LinearLayer`.
        hidden_activation: See `LinearLayer`.
        hidden_dropout_rate: See `LinearLayer`.
        pooling: Function that pools each output over the windows: `"mean"`
            (default) or `"max"`.
        **kwargs: See `keras.layers.Layer`.

    Call arguments:
        outputs: Dict that `AdaptedEncoder` returns for the sequences of all
            windows, and `padding_mask`, `(batch, windows, tokens)`. Windows
            without tokens are ignored. If `padding_mask` has shape
            `(batch, tokens)` or is missing, each sequence is a whole text.
        seeds: `StatelessSeeds` in training, else `None`.

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
        pooling: str = "mean",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            num_outputs,
            reads,
            dropout_rate,
            hidden_activation,
            hidden_dropout_rate,
            **kwargs,
        )
        self.pooling = pooling

    def call(
        self, outputs: dict[str, Tensor], seeds: "StatelessSeeds | None" = None
    ) -> Tensor:
        x = super().call(outputs, seeds=seeds)
        mask = outputs.get("padding_mask")
        if mask is None or len(mask.shape) < 3:
            return x
        return pool_windows(x, mask, self.pooling)


def pool_windows(x: Tensor, padding_mask: Tensor, pooling: str) -> Tensor:
    """Pools the outputs of each text's windows to `(batch, width)`.

    Args:
        x: `(batch * windows, width)`. Outputs of all windows.
        padding_mask: `(batch, windows, tokens)`. Windows without tokens are
            ignored.
        pooling: `"mean"` or `"max"`.
    """
    is_there = ops.any(ops.cast(padding_mask, "bool"), axis=-1)[..., None]
    sizes = ops.shape(padding_mask)
    x = ops.reshape(x, (sizes[0], sizes[1], x.shape[-1]))
    if pooling == "max":
        return ops.max(ops.where(is_there, x, ABSENT), axis=1)
    counts = ops.sum(ops.cast(is_there, x.dtype), axis=1)
    total = ops.sum(ops.where(is_there, x, 0.0), axis=1)
    return total / ops.maximum(counts, 1.0)


def check_pools_windows(head: "Head | type[Head]", name: str) -> None:
    """Raises a `UserError` if a head does not support windows.

    Args:
        head: `Head`, or a class of heads.
        name: Name under which the head is registered, for the message.
    """
    if "windows" not in {field.name for field in dataclasses.fields(head)}:
        raise UserError(
            "`windows` is for heads with one output for each text: classes, "
            f"several labels, a number. Received: a head `{name}`. Leave "
            "`windows` out; the guide says what that head does with long "
            "texts."
        )
