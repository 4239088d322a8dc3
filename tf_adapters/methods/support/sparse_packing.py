"""Packing of gated weights: an adapter folder stores only nonzero ones.

For each gated layer the folder has two tensors. `open` holds the indices of the
weights with nonzero gates in the flattened weights, and `values` holds these
weights multiplied by their gates. All other weights are exactly zero. After
loading, gates are 0 or 1.

The flattened weights are the kernel and bias of a gated layer (AdapterBias), or
the elements of the difference to a weight of the encoder (diff pruning).
"""

from typing import Any

from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.types import Tensor
from tf_adapters.layers.hard_concrete import HardConcreteGates

_GATES = "/gates/scaled_log_alpha"
_DIFFERENCE = "/difference"
_GROUP = "/group/scaled_log_alpha"
# At this logit the deterministic gate is exactly 1; at its negative, exactly 0.
_CERTAIN = 20.0


def pack_gates(tensors: dict[str, Any], gate_options: dict[str, Any]):
    """Packs the gated layers among `tensors` into `open` and `values`.

    Args:
        tensors: Dict from name to array.
        gate_options: Keyword arguments of `HardConcreteGates`.
    """
    packed = dict(tensors)
    for name in [n for n in tensors if n.endswith(_GATES)]:
        prefix = name.removesuffix(_GATES)
        log_alpha = packed.pop(name)
        kernel = packed.pop(f"{prefix}/kernel")
        bias = packed.pop(f"{prefix}/bias")
        gates = gate_values(log_alpha, gate_options)
        weights = np.concatenate([kernel[:, 0], bias]) * gates
        (indices,) = np.nonzero(gates)
        packed[f"{prefix}/open"] = indices.astype("int32")
        packed[f"{prefix}/values"] = weights[indices]
    return packed


def gate_values(scaled_log_alpha, gate_options: dict[str, Any]) -> Tensor:
    """Returns the deterministic gates for stored logits.

    Args:
        scaled_log_alpha: Array of stored logits.
        gate_options: Keyword arguments of `HardConcreteGates`.
    """
    gates = HardConcreteGates(scaled_log_alpha.shape, **gate_options)
    gates.build()
    gates.scaled_log_alpha.assign(scaled_log_alpha)
    return ops.convert_to_numpy(gates.call())


def unpack_gates(
    tensors: dict[str, Any],
    shapes: dict[str, Any],
    gate_options: dict[str, Any],
):
    """Restores the tensors that `pack_gates` packed.

    Args:
        tensors: Dict from name to array, as returned by `pack_gates`.
        shapes: Dict from the name to the shape of each variable of the
            model.
        gate_options: Keyword arguments of `HardConcreteGates`.

    Raises:
        UserError: If a packed tensor is missing or has a wrong shape, or if
            `tensors` also has a tensor that it replaces. The message names it.
    """
    multiplier = gate_options["learning_rate_multiplier"]
    unpacked = dict(tensors)
    for name in [n for n in shapes if n.endswith(_GATES)]:
        prefix = name.removesuffix(_GATES)
        indices, values = take_packed(
            unpacked,
            prefix,
            *shapes[name],
            replaced=("/kernel", "/bias", _GATES),
        )
        weights = np.zeros(shapes[name], "float32")
        log_alpha = np.full(shapes[name], -_CERTAIN, "float32")
        weights[indices] = values
        log_alpha[indices] = _CERTAIN
        unpacked[name] = log_alpha / multiplier
        unpacked[f"{prefix}/kernel"] = weights[:-1, None]
        unpacked[f"{prefix}/bias"] = weights[-1:]
    return unpacked


def pack_differences(tensors: dict[str, Any], gate_options: dict[str, Any]):
    """Packs the differences among `tensors` into `open` and `values`.

    Args:
        tensors: Dict from name to array.
        gate_options: Keyword arguments of `HardConcreteGates`.
    """
    packed = dict(tensors)
    for name in [n for n in tensors if n.endswith(_DIFFERENCE)]:
        prefix = name.removesuffix(_DIFFERENCE)
        gates = gate_values(packed.pop(prefix + _GATES), gate_options)
        if prefix + _GROUP in packed:
            group = gate_values(packed.pop(prefix + _GROUP), gate_options)
            gates = group * gates
        change = (gates * packed.pop(name)).ravel()
        (indices,) = np.nonzero(gates.ravel())
        packed[f"{prefix}/open"] = indices.astype("int32")
        packed[f"{prefix}/values"] = change[indices]
    return packed


def unpack_differences(
    tensors: dict[str, Any],
    shapes: dict[str, Any],
    gate_options: dict[str, Any],
):
    """Restores the tensors that `pack_differences` packed.

    Args:
        tensors: Dict from name to array, as returned by `pack_differences`.
        shapes: Dict from the name to the shape of each variable of the
            model.
        gate_options: Keyword arguments of `HardConcreteGates`.

    Raises:
        UserError: If a packed tensor is missing or has a wrong shape, or if
            `tensors` also has a tensor that it replaces. The message names it.
    """
    certain = HardConcreteGates.CERTAIN
    certain = certain / gate_options["learning_rate_multiplier"]
    unpacked = dict(tensors)
    for name in [n for n in shapes if n.endswith(_DIFFERENCE)]:
        prefix, shape = name.removesuffix(_DIFFERENCE), shapes[name]
        indices, values = take_packed(
            unpacked,
            prefix,
            int(np.prod(shape)),
            replaced=(_DIFFERENCE, _GATES, _GROUP),
        )
        difference = np.zeros(int(np.prod(shape)), "float32")
        log_alpha = np.full(difference.shape, -certain, "float32")
        difference[indices] = values
        log_alpha[indices] = certain
        unpacked[name] = difference.reshape(shape)
        unpacked[prefix + _GATES] = log_alpha.reshape(shape)
        if prefix + _GROUP in shapes:
            unpacked[prefix + _GROUP] = np.float32(certain).reshape(())
    return unpacked


def take_packed(tensors: dict[str, Any], prefix, count: int, replaced):
    """Removes `open` and `values` of one gated layer from `tensors`.

    Both are checked, because NumPy would broadcast a single value to all
    indices and count negative indices from the end.

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


def _are_indices(indices, count: int):
    """Returns whether `indices` are increasing integers in `[0, count)`."""
    return (
        indices.ndim == 1
        and np.issubdtype(indices.dtype, np.integer)
        and bool(np.all((indices >= 0) & (indices < count)))
        and bool(np.all(np.diff(indices.astype("int64")) > 0))
    )
