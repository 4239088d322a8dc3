"""Gated weights as an adapter folder holds them: those that are not zero.

For each gated layer, `open` holds the places of these weights in the row of
kernel and bias, and `values` their products with their gates; all others are
zero exactly. Read again, gates are 0 or 1.
"""

import numpy as np

from tf_adapters.layers.hard_concrete import HardConcreteGates

_GATES = "/gates/scaled_log_alpha"
# A logit at which the deterministic gate is exactly 1, and below 0 exactly 0.
_CERTAIN = 20.0


def pack(tensors, gate_options):
    """Returns `tensors` with the gated ones in their smaller form.

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
        (places,) = np.nonzero(gates)
        packed[f"{prefix}/open"] = places.astype("int32")
        packed[f"{prefix}/values"] = weights[places]
    return packed


def gate_values(scaled_log_alpha, gate_options):
    """Returns the deterministic gates of stored logits."""
    gates = HardConcreteGates(scaled_log_alpha.shape, **gate_options)
    gates.build()
    gates.scaled_log_alpha.assign(scaled_log_alpha)
    return np.asarray(gates.call())


def unpack(tensors, shapes, gate_options):
    """Returns the tensors that `pack` made smaller.

    Args:
        tensors: Dict from name to array.
        shapes: Dict from name to shape of the model's variables.
        gate_options: Keyword arguments of `HardConcreteGates`.

    Raises:
        ValueError: If a packed tensor is missing or misshaped, or what it
            stands for is there as well; the message names it.
    """
    multiplier = gate_options["learning_rate_multiplier"]
    unpacked = dict(tensors)
    for name in [n for n in shapes if n.endswith(_GATES)]:
        prefix = name.removesuffix(_GATES)
        places, values = take_packed(
            unpacked,
            prefix,
            *shapes[name],
            replaced=("/kernel", "/bias", _GATES),
        )
        weights = np.zeros(shapes[name], "float32")
        log_alpha = np.full(shapes[name], -_CERTAIN, "float32")
        weights[places] = values
        log_alpha[places] = _CERTAIN
        unpacked[name] = log_alpha / multiplier
        unpacked[f"{prefix}/kernel"] = weights[:-1, None]
        unpacked[f"{prefix}/bias"] = weights[-1:]
    return unpacked


def take_packed(tensors, prefix, count, replaced):
    """Takes `open` and `values` of one gated layer out of `tensors`, checked.

    NumPy would spread a single value over all places, and take a negative
    place for one from the end.

    Args:
        tensors: Dict from name to array.
        prefix: Name of the layer.
        count: How many weights it has.
        replaced: Ends of the names of what the two stand for.

    Raises:
        ValueError: See `unpack`.
    """
    open_name, values_name = f"{prefix}/open", f"{prefix}/values"
    missing = [n for n in (open_name, values_name) if n not in tensors]
    unexpected = [prefix + end for end in replaced if prefix + end in tensors]
    if missing or unexpected:
        raise ValueError(
            f"Missing: {', '.join(missing) or 'none'}. "
            f"Unexpected: {', '.join(unexpected) or 'none'}."
        )
    places, values = tensors.pop(open_name), tensors.pop(values_name)
    if not _are_places(places, count):
        raise ValueError(
            f"`{open_name}` must hold a row of increasing integers from 0 to "
            f"{count - 1}. Received: {places.dtype} of shape "
            f"{places.shape}, {places.ravel()[:5].tolist()}..."
        )
    if values.shape != places.shape:
        raise ValueError(
            f"`{values_name}` has shape {values.shape}, but `{open_name}` has "
            f"{places.shape}: they need one value for each place."
        )
    return places, values


def _are_places(places, count):
    """Returns whether `places` index a row of `count`, each at most once."""
    return (
        places.ndim == 1
        and np.issubdtype(places.dtype, np.integer)
        and bool(np.all((places >= 0) & (places < count)))
        and bool(np.all(np.diff(places.astype("int64")) > 0))
    )
