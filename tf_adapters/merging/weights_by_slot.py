"""The weights of adapters, grouped by slot.

A bottleneck is a sum over its units. Each unit has a column of `down_kernel`, a
number in `down_bias` and a row of `up_kernel`. A LoRA is a sum over its ranks,
which have no bias and no activation.
"""

import numpy as np

# The output is linear in these weights: negating them negates the output.
UP = ("up_kernel", "up_bias")


def by_slot(tensors: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Groups an adapter's weights by slot, and leaves out the head's weights.

    Args:
        tensors: Dict from name to array, as in an adapter folder.

    Returns:
        Dict from a slot's name to a dict from a weight's name
        (`down_kernel`, ...) to array.
    """
    slots = {}
    for name, array in tensors.items():
        if not name.startswith("head/"):
            slot, _, weight = name.rpartition("/")
            slots.setdefault(slot, {})[weight] = array
    return slots


def to_tensors(
    slots: dict[str, dict[str, np.ndarray]],
) -> dict[str, np.ndarray]:
    """Undoes `by_slot`: returns a dict from full name to array.

    The head's weights, which `by_slot` left out, are not included.
    """
    return {
        f"{slot}/{weight}": array
        for slot, weights in slots.items()
        for weight, array in weights.items()
    }


def of_head(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the entries of an adapter's `tensors` that belong to its head."""
    return {k: v for k, v in tensors.items() if k.startswith("head/")}
