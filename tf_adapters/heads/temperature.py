"""Temperature scaling, which calibrates the probabilities of a model."""

import logging
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize
import scipy.special

_LOGGER = logging.getLogger(__name__)
# Limits of the search for the best temperature. All temperatures that Guo et
# al. 2017 report are between them.
_LEAST, _LARGEST = 0.05, 20.0


def fit_temperature(logits: ArrayLike, targets: ArrayLike) -> float:
    """Returns the temperature that maximizes the likelihood of the targets.

    Logits are divided by the temperature. This changes the probabilities, but
    not the predicted classes (Guo et al. 2017, arXiv:1706.04599, section 4.2).
    If all predictions are right, the likelihood has no maximum, because it
    increases as the temperature decreases. The result is then 1.

    Args:
        logits: `(rows, classes)`.
        targets: Class ids, `(rows,)`.
    """
    logits, targets = np.asarray(logits, "float64"), np.asarray(targets)
    if np.array_equal(logits.argmax(axis=-1), targets):
        _LOGGER.warning(
            "All %s validation rows are predicted correctly, so no "
            "temperature can be fitted and it stays 1. Use more rows, or "
            "harder ones.",
            f"{len(targets):,}",
        )
        return 1.0
    right = logits[np.arange(len(targets)), targets]

    def loss(log_temperature: float) -> float:
        scale = np.exp(-log_temperature)
        totals = scipy.special.logsumexp(scale * logits, axis=-1)
        return np.mean(totals - scale * right)

    # The loss is convex in 1 / temperature, so it has only one minimum.
    found: Any = optimize.minimize_scalar(
        loss, bounds=np.log([_LEAST, _LARGEST]), method="bounded"
    )
    temperature = round(float(np.exp(found.x)), 4)
    if temperature > 0.99 * _LARGEST:
        _LOGGER.warning(
            "The best temperature is the largest one tried, %s: the model's "
            "logits say almost nothing about the classes of the validation "
            "rows. Train a better model before you calibrate it.",
            temperature,
        )
    return temperature
