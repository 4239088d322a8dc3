"""A measured difference: its interval, its p values, and their correction."""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses

import numpy as np
from scipy import stats

CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A difference between two sides, in the unit of the metric.

    Attributes:
        difference: Mean difference over pairs, or between spreads.
        error: Standard error of `difference`, NaN if it is unknown.
        freedom: Degrees of freedom of the standard error.
        p: Two-sided p value for the hypothesis of no difference.
        pairs: Number of pairs, or of boxes for spreads.
        seeds: Smallest number of seeds of any setting, or `None` if the test
            does not use predictions.
        examples: Number of distinct examples, or 0 if the test does not use
            predictions.
        test: Name of the test: `"bootstrap"`, `"pairs"` or `"permutation"`.
        runs: Number of runs. Only set if spreads are compared.
        second_p: p value of Brown and Forsythe's test. Only set if spreads are
            compared.
    """

    difference: float
    error: float
    freedom: float
    p: float
    pairs: int
    seeds: int | None = None
    examples: int = 0
    test: str = "pairs"
    runs: int = 0
    second_p: float | None = None

    @property
    def all_alike(self) -> bool:
        """Whether both sides have the same metric on every sample."""
        return self.difference == 0 and self.error == 0

    @property
    def is_alone(self) -> bool:
        """Whether this compares only one pair, and does not use predictions."""
        return self.test == "pairs" and self.pairs == 1

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Returns both ends of a confidence interval, NaN if unknown."""
        width = self.error * stats.t.ppf((1 + confidence) / 2, self.freedom)
        return float(self.difference - width), float(self.difference + width)

    def p_above(self, limit: float) -> float:
        """Returns the one-sided p value for a difference above a limit.

        The p value is 1 if the standard error is unknown or 0. The error is 0,
        for example, if both sides give the same answer to every example.
        """
        if self.error == 0 or self.error != self.error:
            return 1.0
        return float(
            stats.t.sf((self.difference - limit) / self.error, self.freedom)
        )

    def p_below(self, limit: float) -> float:
        """Returns the one-sided p value for a difference below a limit."""
        return dataclasses.replace(self, difference=-self.difference).p_above(
            -limit
        )

    def p_within(self, margin: float) -> float:
        """Returns the p value for a difference between `-margin` and `margin`.

        It combines two one-sided tests (Schuirmann 1987). Both must be
        significant, so the larger p counts.
        """
        return max(self.p_above(-margin), self.p_below(margin))


def add_variances(
    parts: Iterable[tuple[float, float]],
) -> tuple[float, float]:
    """Returns a sum's standard error and degrees of freedom (Satterthwaite).

    Args:
        parts: Pairs of the variance and the degrees of freedom of each term.
    """
    parts = list(parts)
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return 0.0, float(max(1, sum(freedom for _, freedom in parts)))
    spread = sum(part**2 / max(freedom, 1) for part, freedom in parts)
    return float(np.sqrt(variance)), float(variance**2 / spread)


def p_of_t(difference: float, error: float, freedom: float) -> float:
    """Returns the two-sided p value of a t test."""
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    return float(2 * stats.t.sf(abs(difference) / error, freedom))


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p values corrected for multiple tests by Holm's method (1979).

    At a level of 5 %, the chance that any test is a false positive is at most
    5 %.
    """
    order = np.argsort(p_values, kind="stable")
    corrected, least = np.empty(len(p_values)), 0.0
    for rank, place in enumerate(order):
        own = min(1.0, (len(p_values) - rank) * p_values[place])
        least = max(least, own)
        corrected[place] = least
    return corrected.tolist()
