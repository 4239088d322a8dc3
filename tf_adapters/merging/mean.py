"""The weighted sum of adapters, weight by weight.

The two factors of a LoRA are summed separately, as in LoraHub (Huang et al.
2023, arXiv:2307.13269), so the product also has the terms `w_i w_j A_i B_j`.
"""


def weighted_sum(members, weights):
    """Returns `sum_i w_i theta_i` for each weight `theta`.

    Args:
        members: List of dicts of equal shapes, see
            `weights_by_slot.by_slot`.
        weights: A number for each member.
    """
    return {
        slot: {
            name: sum(
                weight * member[slot][name]
                for member, weight in zip(members, weights, strict=True)
            ).astype(array.dtype)
            for name, array in arrays.items()
        }
        for slot, arrays in members[0].items()
    }
