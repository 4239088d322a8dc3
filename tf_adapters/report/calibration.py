"""Measures the calibration of predicted probabilities."""

import dataclasses
from typing import Any

import numpy as np
from sklearn.calibration import calibration_curve

# As in table 1 of Guo et al. 2017, arXiv:1706.04599.
BINS = 15


@dataclasses.dataclass(frozen=True)
class Reliability:
    """The data of a reliability diagram.

    Predictions are grouped by probability, in bins of equal width. The arrays
    have an entry for each bin that is not empty.

    Attributes:
        probability: Mean probability of the predictions in each bin.
        share: Share of right predictions in each bin.
        counts: Number of predictions in each bin.
        bins: Number of bins, including empty ones.
    """

    probability: np.ndarray
    share: np.ndarray
    counts: np.ndarray
    bins: int

    @property
    def means(self) -> list[float]:
        """List of two numbers: mean probability and share of right predictions.

        Both are computed over the predictions in all bins.
        """
        return [
            float(np.average(values, weights=self.counts))
            for values in (self.probability, self.share)
        ]

    @property
    def error(self) -> float:
        """The expected calibration error (Guo et al. 2017, equation 3)."""
        gaps = np.abs(self.probability - self.share)
        return float(np.average(gaps, weights=self.counts))


def reliability(
    right: Any, probabilities: Any, bins: int = BINS
) -> "Reliability":
    """Computes the data of a reliability diagram.

    Args:
        right: Array of booleans that say whether each prediction is right.
        probabilities: Probability of each prediction, from 0 to 1.
        bins: Number of bins between 0 and 1. Default: 15.
    """
    right = np.asarray(right).astype(int)
    share, probability = calibration_curve(right, probabilities, n_bins=bins)
    edges = np.linspace(0, 1, bins + 1)
    # scikit-learn does not return the counts. Count in the bins that it uses.
    places = np.searchsorted(edges[1:-1], probabilities)
    counts = np.bincount(places, minlength=bins)
    return Reliability(probability, share, counts[counts > 0], bins)
