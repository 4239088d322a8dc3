"""The units of one adapter in the order of another's.

Whatever order a bottleneck's units have, it computes the same, and adapters
that were trained from different starts have them in orders that have nothing to
do with each other. Each unit is put in the place of the one that it is most
correlated with (Li et al. 2015, arXiv:1511.07543; Ainsworth et al. 2022,
arXiv:2209.04836, section 3.1), and all pairs are chosen together, by the
Hungarian method.
"""

import numpy as np
import scipy.optimize

from tf_adapters.methods.support.bottleneck_slots import UNITS_AXIS


def matched_bottlenecks(member, activations, reference_activations):
    """Returns a bottleneck adapter with its units in another one's order.

    Args:
        member: Dict, see `weights_by_slot.by_slot`.
        activations: Dict from slot to its units' activations, an array
            `(tokens, units)`, in this adapter's own model.
        reference_activations: Those of the other adapter, for the same tokens.
    """
    return {
        slot: _reordered(
            parts,
            best_order(
                correlations(reference_activations[slot], activations[slot])
            ),
        )
        for slot, parts in member.items()
    }


def correlations(one, other):
    """Returns the correlation of each column with each of another array.

    Columns that never change, as those of units that are never active, have
    none with any: 0.
    """
    one, other = _standardised(one), _standardised(other)
    return one.T @ other / len(one)


def _standardised(columns):
    columns = columns.astype("float64")
    columns = columns - columns.mean(axis=0)
    deviations = columns.std(axis=0)
    return columns / np.where(deviations > 1e-12, deviations, np.inf)


def best_order(likeness):
    """Returns for each row the column that it is paired with.

    Args:
        likeness: Square array. The sum over all pairs is the largest there is.
    """
    _, columns = scipy.optimize.linear_sum_assignment(likeness, maximize=True)
    return columns


def matched_loras(member, reference):
    """Returns a LoRA with its ranks in another one's order and of its signs.

    A rank is a matrix `a b`, and likeness the inner product of two of them,
    which takes no texts. Only order and sign are undone: any invertible matrix
    between `A` and `B` leaves their product as it is.

    Args:
        member: Dict, see `weights_by_slot.by_slot`.
        reference: That of the other LoRA.
    """
    return {
        slot: _matched_lora(parts, reference[slot])
        for slot, parts in member.items()
    }


def _matched_lora(parts, reference):
    downs = reference["down_kernel"].T @ parts["down_kernel"]
    ups = reference["up_kernel"] @ parts["up_kernel"].T
    order = best_order(downs * ups)
    # Both factors' signs are turned, or neither: the product stays.
    turns = np.where(np.diag(downs[:, order] + ups[:, order]) < 0, -1, 1)
    reordered = _reordered(parts, order)
    return {
        "down_kernel": reordered["down_kernel"] * turns.astype("float32"),
        "up_kernel": reordered["up_kernel"] * turns[:, None].astype("float32"),
    }


def _reordered(parts, order):
    return {
        part: np.take(array, order, UNITS_AXIS[part])
        if part in UNITS_AXIS
        else array
        for part, array in parts.items()
    }
