"""The weights of adapters, slot by slot.

A bottleneck is a sum over its units: each has a column of `down_kernel`, a
number of `down_bias` and a row of `up_kernel`. A LoRA is one over its ranks,
which have no bias and no activation.
"""

# What a unit's output is proportional to; with its sign changes that of all.
UP = ("up_kernel", "up_bias")


def by_slot(tensors):
    """Returns an adapter's weights as a dict of dicts, without the head.

    Args:
        tensors: Dict from name to array, as an adapter folder has them.

    Returns:
        Dict from a slot's name to a dict from part (`down_kernel`, ...) to
        array.
    """
    slots = {}
    for name, array in tensors.items():
        if not name.startswith("head/"):
            slot, _, part = name.rpartition("/")
            slots.setdefault(slot, {})[part] = array
    return slots


def to_tensors(slots):
    """Returns what `by_slot` was given, but for the head."""
    return {
        f"{slot}/{part}": array
        for slot, parts in slots.items()
        for part, array in parts.items()
    }


def of_head(tensors):
    """Returns the head's weights among those of an adapter."""
    return {k: v for k, v in tensors.items() if k.startswith("head/")}
