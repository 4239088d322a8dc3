"""Temperature scaling: one number that makes probabilities believable."""

import logging

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize
import scipy.special

_LOGGER = logging.getLogger(__name__)
# Wider than any that Guo et al. 2017 report.
_LEAST, _LARGEST = 0.05, 20.0


def fit_temperature(logits: ArrayLike, targets: ArrayLike) -> float:
    """Returns what logits are divided by for the largest likelihood.

    No prediction changes, only how sure the model says that it is (Guo et al.
    2017, arXiv:1706.04599, section 4.2). Of rows that are all right, whose
    likelihood grows without an end as the temperature falls, it is 1.

    Args:
        logits: `(rows, classes)`.
        targets: Class ids, `(rows,)`.
    """
    logits, targets = np.asarray(logits, "float64"), np.asarray(targets)
    if np.array_equal(logits.argmax(axis=-1), targets):
        _LOGGER.warning(
            "All %s validation rows are right, so that no temperature can be "
            "fitted to them: it stays 1. Take more of them, or harder ones.",
            f"{len(targets):,}",
        )
        return 1.0
    right = logits[np.arange(len(targets)), targets]

    def loss(log_temperature):
        scale = np.exp(-log_temperature)
        totals = scipy.special.logsumexp(scale * logits, axis=-1)
        return np.mean(totals - scale * right)

    # The loss is convex in 1 / temperature: this finds the only minimum.
    found = optimize.minimize_scalar(
        loss, bounds=np.log([_LEAST, _LARGEST]), method="bounded"
    )
    temperature = round(float(np.exp(found.x)), 4)
    if temperature > 0.99 * _LARGEST:
        _LOGGER.warning(
            "The temperature that fits best is the largest that is tried, %s: "
            "on validation the model's logits say next to nothing of the "
            "class. Train a better one before you calibrate it.",
            temperature,
        )
    return temperature
