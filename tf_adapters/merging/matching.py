"""Reorders the units of an adapter to match those of another adapter.

The order of a bottleneck's units does not affect its output, and adapters that
were trained from different starting points have unrelated orders. Each unit is
paired with the unit it is most correlated with (Li et al. 2015,
arXiv:1511.07543; Ainsworth et al. 2022, arXiv:2209.04836, section 3.1). The
Hungarian method chooses all pairs together.
"""

import numpy as np
import scipy.optimize

from tf_adapters.methods.support.bottleneck_slots import UNITS_AXIS


def matched_bottlenecks(
    member: dict[str, dict[str, np.ndarray]],
    activations: dict[str, np.ndarray],
    reference_activations: dict[str, np.ndarray],
) -> dict[str, dict[str, np.ndarray]]:
    """Reorders the units of a bottleneck adapter to match another adapter.

    Args:
        member: Dict of the adapter's weights; see `weights_by_slot.by_slot`.
        activations: Dict from slot to its units' activations, an array
            `(tokens, units)`, in this adapter's own model.
        reference_activations: The other adapter's activations for the same
            tokens.
    """
    return {
        slot: _reordered(
            arrays,
            best_order(
                correlations(reference_activations[slot], activations[slot])
            ),
        )
        for slot, arrays in member.items()
    }


def correlations(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Correlates each column of `one` with each column of `other`.

    The result has a row for each column of `one`, and a column for each column
    of `other`. The correlations of a constant column are 0, for example if a
    unit is never active.
    """
    one, other = _standardized(one), _standardized(other)
    return one.T @ other / len(one)


def _standardized(columns: np.ndarray) -> np.ndarray:
    columns = columns.astype("float64")
    columns = columns - columns.mean(axis=0)
    deviations = columns.std(axis=0)
    return columns / np.where(deviations > 1e-12, deviations, np.inf)


def best_order(likeness: np.ndarray) -> np.ndarray:
    """Pairs rows with columns, and returns the column index for each row.

    Args:
        likeness: Square array with the similarity of each row's unit to each
            column's unit. The pairs maximize the sum of the similarities.
    """
    _, columns = scipy.optimize.linear_sum_assignment(likeness, maximize=True)
    return columns


def matched_loras(
    member: dict[str, dict[str, np.ndarray]],
    reference: dict[str, dict[str, np.ndarray]],
) -> dict[str, dict[str, np.ndarray]]:
    """Reorders the rank components of a LoRA to match those of another LoRA.

    A rank component is a column `a` of the first factor `A` with a row `b` of
    the second factor `B`. The similarity of two components is the inner product
    of their matrices `a b`, so no texts are needed. The signs of `a` and `b`
    are flipped together if this makes them more similar to the other LoRA.
    Other changes that leave the product `A B` the same, such as a rotation, are
    not tried.

    Args:
        member: Dict of the LoRA's weights; see `weights_by_slot.by_slot`.
        reference: Dict of the other LoRA's weights.
    """
    return {
        slot: _matched_lora(arrays, reference[slot])
        for slot, arrays in member.items()
    }


def _matched_lora(
    arrays: dict[str, np.ndarray], reference: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    downs = reference["down_kernel"].T @ arrays["down_kernel"]
    ups = reference["up_kernel"] @ arrays["up_kernel"].T
    order = best_order(downs * ups)
    # Flip the signs of both factors or of neither, to keep the product.
    turns = np.where(np.diag(downs[:, order] + ups[:, order]) < 0, -1, 1)
    reordered = _reordered(arrays, order)
    return {
        "down_kernel": reordered["down_kernel"] * turns.astype("float32"),
        "up_kernel": reordered["up_kernel"] * turns[:, None].astype("float32"),
    }


def _reordered(
    arrays: dict[str, np.ndarray], order: np.ndarray
) -> dict[str, np.ndarray]:
    return {
        name: np.take(array, order, UNITS_AXIS[name])
        if name in UNITS_AXIS
        else array
        for name, array in arrays.items()
    }
