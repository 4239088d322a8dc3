"""How far probabilities can be believed."""

import dataclasses

import numpy as np
from sklearn.calibration import calibration_curve

# Guo et al. 2017, arXiv:1706.04599, table 1.
BINS = 15


@dataclasses.dataclass(frozen=True)
class Reliability:
    """A reliability diagram: bins of equal width that have any predictions.

    Attributes:
        probability: Mean probability of each bin.
        share: Share of each bin that is right.
        counts: Number of predictions in each bin.
        bins: Number of bins, with those that have none.
    """

    probability: np.ndarray
    share: np.ndarray
    counts: np.ndarray
    bins: int

    @property
    def means(self):
        """Mean probability and share that is right, of all predictions."""
        return [
            float(np.average(values, weights=self.counts))
            for values in (self.probability, self.share)
        ]

    @property
    def error(self):
        """The expected calibration error (Guo et al. 2017, equation 3)."""
        gaps = np.abs(self.probability - self.share)
        return float(np.average(gaps, weights=self.counts))


def reliability(right, probabilities, bins=BINS):
    """Returns the `Reliability` of predictions.

    Args:
        right: Booleans, whether each prediction is right.
        probabilities: How likely each was said to be, from 0 to 1.
        bins: Number of bins between 0 and 1.
    """
    right = np.asarray(right).astype(int)
    share, probability = calibration_curve(right, probabilities, n_bins=bins)
    edges = np.linspace(0, 1, bins + 1)
    # As in scikit-learn, which does not return the counts.
    places = np.searchsorted(edges[1:-1], probabilities)
    counts = np.bincount(places, minlength=bins)
    return Reliability(probability, share, counts[counts > 0], bins)
