"""Casts the kernels that do not train to half precision once, not per step."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from typing import Any
import weakref

import keras
import tensorflow as tf

from tf_adapters.layers.reparameterization import InnerScope
from tf_adapters.training import distribution

if TYPE_CHECKING:
    from collections.abc import Iterable


# Encoder: its copies, by the identity of the kernel and the type. The trainers
# of a multi-task run share them, and the last one frees them.
_COPIES: weakref.WeakKeyDictionary[
    Any, weakref.WeakValueDictionary[tuple[int, str], Any]
] = weakref.WeakKeyDictionary()


class HalfKernels:
    """Copies of an encoder's kernels in the precision of its computation.

    Weights are stored in float32. A step in half precision casts the kernels of
    all blocks, which takes time on a CPU. Matrices that do not train can be
    cast once. The outputs are the same to the last bit. The copies take half of
    the matrices' memory. All trainers of an encoder share them.

    Does nothing in float32, with several replicas, which would need a copy
    each, or on a TPU, whose compiled steps make casts free.

    Args:
        model: Model with an `encoder` and a `reparameterization`.
        strategy: `tf.distribute.Strategy`.
        trained: The variables that train.
    """

    def __init__(
        self,
        model: Any,
        strategy: tf.distribute.Strategy,
        trained: Iterable[keras.Variable],
    ) -> None:
        self._kernels: list[keras.Variable] = []
        self._copies: list[tf.Variable] = []
        backbone = model.encoder.backbone
        self._dtype = backbone.dtype_policy.compute_dtype
        self._shared = _COPIES.setdefault(
            backbone, weakref.WeakValueDictionary()
        )
        is_one_device = (
            strategy.num_replicas_in_sync == 1
            and not distribution.is_tpu(strategy)
        )
        if self._dtype == "float32" or not is_one_device:
            return
        changing = [
            *trained,
            *model.reparameterization.computed(),
            *model.reparameterization.written(),
        ]
        changing = {id(variable) for variable in changing}
        kernels = {id(v): v for v in _cast_in_each_step(model)}
        self._kernels = [v for i, v in kernels.items() if i not in changing]

    def refresh(self) -> None:
        """Casts the kernels. Call it before the first step, and after changes.

        Other models of the encoder may have changed them.
        """
        if not self._copies:
            self._copies = [self._copy_of(kernel) for kernel in self._kernels]
        for kernel, copy in zip(self._kernels, self._copies, strict=True):
            copy.assign(tf.cast(kernel.value, self._dtype))

    def _copy_of(self, kernel: keras.Variable) -> tf.Variable:
        key = id(kernel), self._dtype
        copy = self._shared.get(key)
        if copy is None:
            value = tf.cast(kernel.value, self._dtype)
            copy = self._shared[key] = tf.Variable(value, trainable=False)
        return copy

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Returns a context manager in which a model uses the copies."""
        if not self._copies:
            return contextlib.nullcontext()
        pairs = zip(self._kernels, self._copies, strict=True)
        return InnerScope([(v, tf.convert_to_tensor(c)) for v, c in pairs])


def _cast_in_each_step(model: Any) -> list[keras.Variable]:
    """Returns the float32 matrices that a step in half precision casts."""
    # Embeddings are not among them: they are looked up in float32.
    return [
        matrix
        for block in model.encoder.blocks
        for matrix, _ in block.kernels().values()
        if isinstance(matrix, keras.Variable)
        and keras.backend.standardize_dtype(matrix.dtype) == "float32"
    ]
