"""The weighted sum of adapters, weight by weight.

Of LoRAs the factors are summed each for itself, as in LoraHub (Huang et al.
2023, arXiv:2307.13269), so that the product has terms `w_i w_j A_i B_j` too.
"""


def weighted_sum(members, weights):
    """Returns `sum_i w_i theta_i` of each weight.

    Args:
        members: List of dicts, see `weights_by_slot.by_slot`, of equal shapes.
        weights: A number for each.
    """
    return {
        slot: {
            part: sum(
                weight * member[slot][part]
                for member, weight in zip(members, weights, strict=True)
            ).astype(array.dtype)
            for part, array in parts.items()
        }
        for slot, parts in members[0].items()
    }
