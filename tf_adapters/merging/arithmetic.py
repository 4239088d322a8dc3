"""The exact weighted sum of adapters' outputs, as one wider adapter.

A bottleneck `i` computes `U_i f(D_i x + c_i) + b_i`, with down-projection `D_i`
and up-projection `U_i`. The sum of several bottlenecks with weights `w_i` is
one bottleneck with the units of all of them, whose up-projections are `w_i U_i`
and whose bias is the sum of all `w_i b_i`. Likewise, the weighted sum of LoRAs
`s_i A_i B_i`, with scales `s_i`, is one LoRA whose rank is the sum of theirs
(PEFT calls this `cat`). A negative weight subtracts an adapter: it flips the
sign of the up-projection only. Flipping the signs of both projections would not
change a LoRA, and would change a bottleneck unpredictably.
"""

from collections.abc import Sequence

import numpy as np

from tf_adapters.merging.weights_by_slot import UP
from tf_adapters.methods.support.bottleneck_slots import UNITS_AXIS


def joined(
    members: list[dict[str, dict[str, np.ndarray]]],
    weights: Sequence[float] | np.ndarray,
) -> dict[str, dict[str, np.ndarray]]:
    """Joins adapters into one that outputs the weighted sum of their outputs.

    Args:
        members: List with a dict for each adapter, as returned by
            `weights_by_slot.by_slot`. Slots must be the same, but the numbers
            of units or ranks may differ.
        weights: A number for each member.
    """
    return {
        slot: _joined_slot([member[slot] for member in members], weights)
        for slot in members[0]
    }


def _joined_slot(
    members: list[dict[str, np.ndarray]], weights: Sequence[float] | np.ndarray
) -> dict[str, np.ndarray]:
    scaled = [
        {
            name: array * np.float32(weight) if name in UP else array
            for name, array in member.items()
        }
        for member, weight in zip(members, weights, strict=True)
    ]
    return {
        name: np.concatenate([m[name] for m in scaled], UNITS_AXIS[name])
        if name in UNITS_AXIS
        else np.sum([m[name] for m in scaled], axis=0)
        for name in members[0]
    }


def cut_to_rank(
    member: dict[str, dict[str, np.ndarray]], rank: int
) -> dict[str, dict[str, np.ndarray]]:
    """Returns the LoRA of a lower rank that best approximates a given LoRA.

    Keeps the largest singular values of each product `A B`, and multiplies both
    new factors by their square roots. The product itself is never computed.

    Args:
        member: Dict of a LoRA's weights; see `weights_by_slot.by_slot`. The
            LoRA's `alpha / rank` must be 1.
        rank: Integer, at most the LoRA's own rank.
    """
    return {slot: _cut_slot(arrays, rank) for slot, arrays in member.items()}


def _cut_slot(
    arrays: dict[str, np.ndarray], rank: int
) -> dict[str, np.ndarray]:
    left, down = np.linalg.qr(arrays["down_kernel"].astype("float64"))
    right, up = np.linalg.qr(arrays["up_kernel"].T.astype("float64"))
    u, values, vh = np.linalg.svd(down @ up.T)
    roots = np.sqrt(values[:rank])
    return {
        "down_kernel": (left @ (u[:, :rank] * roots)).astype("float32"),
        "up_kernel": ((roots[:, None] * vh[:rank]) @ right.T).astype("float32"),
    }
