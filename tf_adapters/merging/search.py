"""Finds the weights of a merge on a few labeled examples, without gradients.

LoraHub (Huang et al. 2023, arXiv:2307.13269) minimizes the loss on a few
examples plus 0.05 times the mean of the weights' absolute values, with each
weight from -1.5 to 1.5, in a few dozen evaluations. It lets Nevergrad choose
the algorithm. Here it is the Nelder-Mead simplex, which first tries no adapter
at all and each adapter alone.
"""

from collections.abc import Callable

import numpy as np
import scipy.optimize

from tf_adapters.common.checks import is_integer
from tf_adapters.common.errors import UserError

# Values of the authors' code (lorahub/algorithm.py).
LIMIT = 1.5
L1 = 0.05


def search(
    loss: Callable[[np.ndarray], float],
    num_weights: int,
    l1: float = L1,
    evaluations: int = 40,
) -> tuple[np.ndarray, float]:
    """Searches for the weights that minimize the loss plus a penalty.

    Returns a tuple: an array with the best weights that were tried, and their
    loss without the penalty.

    Args:
        loss: Function from an array of `num_weights` numbers to the loss.
        num_weights: Number of weights, one for each adapter.
        l1: Factor of the penalty, which is the mean of the weights' absolute
            values. Defaults to 0.05.
        evaluations: Maximum number of evaluations of the loss. Defaults to 40.

    Raises:
        UserError: If `evaluations` is not at least 1, or if the loss was NaN
            each time.
    """
    if not is_integer(evaluations) or evaluations < 1:
        raise UserError(
            "`evaluations` must be an integer of at least 1. Received: "
            f"{evaluations!r}"
        )
    tried = []

    def score(weights: np.ndarray) -> float:
        found = float(loss(weights))
        tried.append((found + l1 * np.abs(weights).mean(), found, weights))
        return tried[-1][0]

    simplex = np.concatenate([np.zeros((1, num_weights)), np.eye(num_weights)])
    scipy.optimize.minimize(
        score,
        simplex[0],
        method="Nelder-Mead",
        bounds=[(-LIMIT, LIMIT)] * num_weights,
        options={
            "initial_simplex": simplex,
            "maxfev": evaluations,
            "xatol": 1e-3,
            "fatol": 1e-5,
        },
    )
    numbers = [one for one in tried if not np.isnan(one[0])]
    if not numbers:
        raise UserError(
            f"The loss was NaN for all {len(tried)} weights that were tried. "
            "Check the function that computes it."
        )
    _, found, weights = min(numbers, key=lambda one: one[0])
    return weights, found
