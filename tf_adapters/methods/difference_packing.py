"""Sparse differences as an adapter folder holds them.

For each weight of the encoder, `open` holds the places of the elements that may
differ, in the row of all of them, and `values` their differences, gates
included. Read again, gates are 0 or 1.
"""

import numpy as np

from tf_adapters.layers.hard_concrete import HardConcreteGates
from tf_adapters.methods.gate_packing import gate_values
from tf_adapters.methods.gate_packing import take_packed

_DIFFERENCE = "/difference"
_GATES = "/gates/scaled_log_alpha"
_GROUP = "/group/scaled_log_alpha"


def pack(tensors, gate_options):
    """Returns `tensors` with the differences in their smaller form.

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
        (places,) = np.nonzero(gates.ravel())
        packed[f"{prefix}/open"] = places.astype("int32")
        packed[f"{prefix}/values"] = change[places]
    return packed


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
    certain = HardConcreteGates.CERTAIN
    certain = certain / gate_options["learning_rate_multiplier"]
    unpacked = dict(tensors)
    for name in [n for n in shapes if n.endswith(_DIFFERENCE)]:
        prefix, shape = name.removesuffix(_DIFFERENCE), shapes[name]
        places, values = take_packed(
            unpacked,
            prefix,
            int(np.prod(shape)),
            replaced=(_DIFFERENCE, _GATES, _GROUP),
        )
        difference = np.zeros(int(np.prod(shape)), "float32")
        log_alpha = np.full(difference.shape, -certain, "float32")
        difference[places] = values
        log_alpha[places] = certain
        unpacked[name] = difference.reshape(shape)
        unpacked[prefix + _GATES] = log_alpha.reshape(shape)
        if prefix + _GROUP in shapes:
            unpacked[prefix + _GROUP] = np.float32(certain).reshape(())
    return unpacked
