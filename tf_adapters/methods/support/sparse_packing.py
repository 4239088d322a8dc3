"""Packs gated weights, so that adapter folders store only nonzero weights.

For each gated layer the folder has two tensors. `open` holds the indices of all
weights whose gates are not zero. `values` holds these weights multiplied by
their gates. All other weights are exactly zero. After loading, gates are 0 or
1. Indices refer to the flattened weights.

The flattened weights are the kernel and bias of a gated layer (AdapterBias), or
the elements of the difference to a weight of the encoder (diff pruning).
"""

import abc
from collections.abc import Iterable
import dataclasses
from typing import TYPE_CHECKING
from typing import Any

from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.layers.hard_concrete import HardConcreteGates
from tf_adapters.methods.support.gating import Gating

if TYPE_CHECKING:
    from tf_adapters.methods.method import Method

GATES = "/gates/scaled_log_alpha"


def gate_options(method: "Method") -> dict[str, float]:
    """Returns a method's gate settings as arguments of `HardConcreteGates`.

    These are the settings whose names begin with `gate_`, without this prefix.
    """
    return {
        field.name.removeprefix("gate_"): getattr(method, field.name)
        for field in dataclasses.fields(method)
        if field.name.startswith("gate_")
    }


class SparseGating(Gating, abc.ABC):
    """Stores only the weights whose gates are not zero.

    Args:
        method: Method with the settings that `gate_options` reads.
    """

    # Suffixes of a gated layer's tensors that `open` and `values` replace. Each
    # gated layer has a tensor with the first suffix, with one element for each
    # of its gates.
    replaced: tuple[str, ...]
    # A logit at which the deterministic gate is exactly 1; at its negative, it
    # is exactly 0.
    certain = HardConcreteGates.CERTAIN

    def __init__(self, method: Any) -> None:
        self.method = method

    @abc.abstractmethod
    def take_weights(
        self, tensors: dict[str, np.ndarray], prefix: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Takes a layer's gates and gated weights out of the dict `tensors`.

        Args:
            tensors: Dict from name to array. It is changed in place.
            prefix: Name of the layer.
        """

    @abc.abstractmethod
    def restored(
        self,
        shapes: dict[str, tuple[int, ...]],
        prefix: str,
        weights: np.ndarray,
        logits: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """Returns a gated layer's tensors in a dict, keyed by name suffix.

        Args:
            shapes: See `unpack`.
            prefix: Name of the layer.
            weights: Flattened weights of the layer.
            logits: Flattened logits of their gates, as the layer stores them.
        """

    def pack(self, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        packed = dict(tensors)
        for prefix in self._layers(tensors):
            gates, weights = self.take_weights(packed, prefix)
            (indices,) = np.nonzero(gates.ravel())
            packed[f"{prefix}/open"] = indices.astype("int32")
            packed[f"{prefix}/values"] = (gates * weights).ravel()[indices]
        return packed

    def unpack(
        self, tensors: dict[str, np.ndarray], shapes: dict[str, tuple[int, ...]]
    ) -> dict[str, np.ndarray]:
        multiplier = self.method.gate_learning_rate_multiplier
        unpacked = dict(tensors)
        for prefix in self._layers(shapes):
            count = int(np.prod(shapes[prefix + self.replaced[0]]))
            indices, values = _take_packed(
                unpacked, prefix, count, self.replaced
            )
            weights = np.zeros(count, "float32")
            logits = np.full(count, -self.certain, "float32")
            weights[indices] = values
            logits[indices] = self.certain
            restored = self.restored(
                shapes, prefix, weights, logits / multiplier
            )
            unpacked |= {prefix + end: array for end, array in restored.items()}
        return unpacked

    def _layers(self, names: Iterable[str]) -> list[str]:
        end = self.replaced[0]
        return [name.removesuffix(end) for name in names if name.endswith(end)]

    def gate_values(self, scaled_log_alpha: np.ndarray) -> np.ndarray:
        """Converts stored logits to the gates that evaluation uses."""
        gates = HardConcreteGates(
            scaled_log_alpha.shape, **gate_options(self.method)
        )
        gates.build()
        gates.scaled_log_alpha.assign(scaled_log_alpha)
        return ops.convert_to_numpy(gates.call())


def _take_packed(
    tensors: dict[str, np.ndarray],
    prefix: str,
    count: int,
    replaced: tuple[str, ...],
) -> tuple[np.ndarray, np.ndarray]:
    """Removes the packed tensors `open` and `values` of a gated layer.

    `open` holds the indices of the weights whose gates are not zero, and
    `values` holds these weights. Both are checked, because NumPy would
    broadcast a single value to all indices and count negative indices from the
    end.

    Args:
        tensors: Dict from name to array. The two are removed from it.
        prefix: Name of the layer.
        count: Number of weights of the layer.
        replaced: Suffixes of the names of the tensors that the two replace.

    Returns:
        `open` and `values`.

    Raises:
        UserError: If `open` or `values` is missing or malformed, or if
            `tensors` also has a tensor that they replace.
    """
    open_name, values_name = f"{prefix}/open", f"{prefix}/values"
    missing = [n for n in (open_name, values_name) if n not in tensors]
    unexpected = [prefix + end for end in replaced if prefix + end in tensors]
    if missing or unexpected:
        raise UserError(
            f"Missing: {cut(', '.join(missing) or 'none')}. "
            f"Unexpected: {cut(', '.join(unexpected) or 'none')}."
        )
    indices, values = tensors.pop(open_name), tensors.pop(values_name)
    if not _are_indices(indices, count):
        raise UserError(
            f"`{open_name}` must hold increasing integers from 0 to "
            f"{count - 1}. Received: {indices.dtype} of shape {indices.shape}, "
            f"{indices.ravel()[:5].tolist()}..."
        )
    if values.shape != indices.shape:
        raise UserError(
            f"`{values_name}` has shape {values.shape}, but `{open_name}` has "
            f"{indices.shape}: they need one value for each index."
        )
    return indices, values


def _are_indices(indices: np.ndarray, count: int) -> bool:
    """Returns whether `indices` are increasing integers in `[0, count)`."""
    return (
        indices.ndim == 1
        and np.issubdtype(indices.dtype, np.integer)
        and bool(np.all((indices >= 0) & (indices < count)))
        and bool(np.all(np.diff(indices.astype("int64")) > 0))
    )
