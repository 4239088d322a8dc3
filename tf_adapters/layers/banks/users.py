"""Computes a layer of a bank only for the examples whose adapter uses it."""

from collections.abc import Iterator
import contextlib
import contextvars

import keras
from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.layers.banks.bank_layer import BankLayer
from tf_adapters.layers.banks.rows import gather
from tf_adapters.layers.context import Context

_COMPUTES_ALL = contextvars.ContextVar("computes_all", default=False)


@contextlib.contextmanager
def for_all_examples() -> Iterator[None]:
    """Context manager in which layers are computed for all examples.

    The file of another format then has no branches, whose operations would not
    be fused, and is the same on every machine that exports it.
    """
    token = _COMPUTES_ALL.set(True)
    try:
        yield
    finally:
        _COMPUTES_ALL.reset(token)


def add_layer(
    y: Tensor, layer: BankLayer, x: Tensor, context: Context
) -> Tensor:
    """Returns `y + layer(x)`, where `layer(x)` is 0 for other adapters.

    In a batch of many methods, each layer belongs to a few of the examples. On
    a CPU, copying these to a smaller batch is faster than computing the layer
    for all. The number of these examples differs from batch to batch, so JAX
    and accelerators compute the layer for all examples. The results are the
    same up to rounding. A SavedModel keeps the choice of the machine on which
    it was exported.

    Args:
        y: `(batch, tokens, width)`.
        layer: `BankLayer` whose row 0 outputs 0.
        x: `(batch, tokens, inputs)`, or `(1, tokens, inputs)` for vectors that
            the examples share.
        context: `Context` of the batch.
    """
    if layer.is_vector or x.shape[0] == 1 or not _can_select():
        return y + layer(x, context=context)
    is_user = layer.is_used(context.adapter_rows)
    (users,) = ops.nonzero(is_user)

    def add_to_users() -> Tensor:
        added = layer(gather(x, users), context=context.of_examples(users))
        indices = ops.expand_dims(users, 1)
        return ops.scatter_update(y, indices, added, reduction="add")

    return ops.cond(
        2 * ops.size(users) < ops.size(is_user),
        add_to_users,
        lambda: y + layer(x, context=context),
    )


def _can_select() -> bool:
    """Returns whether tensors may have a length that depends on values."""
    if _COMPUTES_ALL.get() or keras.backend.backend() != "tensorflow":
        return False
    return keras.distribution.list_devices()[0].startswith("cpu")
