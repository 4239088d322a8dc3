"""Significance of a difference between two sides, as pure functions.

There are two kinds of evidence. If predictions are stored, `bootstrap`
resamples examples and adds the variance over seeds. Otherwise `compare_pairs`
uses only the differences of pairs of runs. All sampling is seeded.

Seeds are not resampled. Without a true difference, three seeds agree in sign by
chance in a quarter of the cases, and then every sample of them does too. So
their variance goes into a t distribution, whose degrees of freedom account for
the small number of seeds (docs/studies.md).
"""

import collections
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
# Largest number of examples times draws that are in memory at a time.
_AT_ONCE = 2_000_000


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A difference between two sides, in the unit of the metric.

    Attributes:
        difference: Mean difference over pairs.
        error: Standard error of `difference`, NaN if it is unknown.
        freedom: Degrees of freedom of the standard error.
        p: Two-sided p value for the hypothesis of no difference.
        pairs: Number of pairs.
        seeds: Number of seeds of the setting with the fewest, or `None` without
            predictions.
        examples: Number of distinct examples, 0 without predictions.
    """

    difference: float
    error: float
    freedom: float
    p: float
    pairs: int
    seeds: int | None = None
    examples: int = 0

    @property
    def all_alike(self) -> bool:
        """Whether the sides are equal on every sample of the examples."""
        return self.difference == 0 and self.error == 0

    @property
    def is_alone(self) -> bool:
        """Whether this compares a single pair without predictions."""
        return self.seeds is None and self.pairs == 1

    def interval(
        self, confidence: Any = CONFIDENCE
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns both ends of a confidence interval, NaN if unknown."""
        width = self.error * stats.t.ppf((1 + confidence) / 2, self.freedom)
        return self.difference - width, self.difference + width


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two runs, one of each side, that differ only in the compared settings.

    Attributes:
        setting: Hashable value of all settings that both runs share, except the
            seed.
        examples: Hashable value that identifies the set of examples.
        count: Number of examples.
        high: Function that takes counts `(draws, examples)` and returns the
            metric of each draw.
        low: The same for the other side.
        group: Value shared by settings that are measured on the same runs, such
            as languages. `None` if the setting is a group of its own.
        sample: Value shared by the pairs of a group that vary together, such as
            their seed. `None` if each pair varies independently.
    """

    setting: Hashable
    examples: Hashable
    count: int
    high: Callable[[np.ndarray], np.ndarray]
    low: Callable[[np.ndarray], np.ndarray]
    group: Hashable = None
    sample: Hashable = None

    def differences(self, counts: np.ndarray) -> np.ndarray:
        """Returns the difference for each draw."""
        return self.high(counts) - self.low(counts)


def bootstrap(
    pairs: Sequence[Any], draws: int = 2000, seed: int = 0
) -> "Comparison":
    """Returns the `Comparison` of pairs whose predictions are stored.

    The difference is the mean over settings of the mean over their seeds. Its
    variance has two parts. The first is the bootstrap variance over examples:
    all pairs and both sides use the same sample of a set of examples. The
    second is the variance of the mean over seeds, computed once for settings
    that are measured on the same runs. Settings, such as tasks, are not
    resampled. The interaction of seeds and examples counts in both parts, so
    the interval is slightly too wide.

    Args:
        pairs: List of `Pair`, at least one for each setting and seed.
        draws: Number of bootstrap samples.
        seed: Integer.
    """
    settings = collections.Counter(pair.setting for pair in pairs)
    weights = [1 / settings[pair.setting] / len(settings) for pair in pairs]
    whole = [
        pair.differences(np.ones((1, pair.count), int))[0] for pair in pairs
    ]
    difference = float(np.dot(weights, whole))
    sets = {pair.examples: pair.count for pair in pairs}
    drawn = _draw(pairs, weights, sets, draws, np.random.default_rng(seed))
    parts = [(np.var(drawn, ddof=1), sum(sets.values()) - len(sets))]
    parts += _of_seeds(pairs, np.multiply(weights, whole))
    error, freedom = _add(parts)
    return Comparison(
        difference,
        error,
        freedom,
        _p_of_t(difference, error, freedom),
        len(pairs),
        _least_seeds(pairs),
        sum(sets.values()),
    )


def _sample(number: Any, pair: Any) -> Any:
    return number if pair.sample is None else pair.sample


def _least_seeds(pairs: Iterable[Any]) -> int:
    samples = collections.defaultdict(set)
    for number, pair in enumerate(pairs):
        samples[pair.setting].add(_sample(number, pair))
    return min(map(len, samples.values()))


def _draw(
    pairs: Iterable[Any], weights: Any, sets: Any, draws: int, generator: Any
) -> np.ndarray:
    """Returns the difference in each bootstrap sample."""
    drawn = np.zeros(draws)
    for examples, count in sets.items():
        own = [
            (pair, weight)
            for pair, weight in zip(pairs, weights, strict=True)
            if pair.examples == examples
        ]
        step = max(1, _AT_ONCE // count)
        for begin in range(0, draws, step):
            part = drawn[begin : begin + step]
            counts = _counts(len(part), count, generator)
            for pair, weight in own:
                part += weight * pair.differences(counts)
    return drawn


def _counts(draws: int, count: Any, generator: Any) -> np.ndarray:
    """Returns how often each bootstrap sample has each example."""
    places = generator.integers(count, size=(draws, count))
    places += count * np.arange(draws)[:, None]
    counts = np.bincount(places.ravel(), minlength=draws * count)
    return counts.reshape(draws, count)


def _of_seeds(pairs: Sequence[Any], shares: Any) -> Iterator[tuple[Any, int]]:
    """Yields the variance and degrees of freedom that each group adds.

    Args:
        pairs: List of `Pair`.
        shares: The contribution of each pair to the difference.
    """
    groups = collections.defaultdict(lambda: collections.defaultdict(float))
    for number, (pair, share) in enumerate(zip(pairs, shares, strict=True)):
        group = pair.setting if pair.group is None else pair.group
        groups[group][_sample(number, pair)] += share
    for sums in groups.values():
        if len(sums) > 1:
            variance = len(sums) * np.var(list(sums.values()), ddof=1)
            yield variance, len(sums) - 1


def _add(parts: Any) -> tuple[float, float]:
    """Returns a sum's standard error and degrees of freedom (Satterthwaite)."""
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return 0.0, float(max(1, sum(freedom for _, freedom in parts)))
    spread = sum(part**2 / max(freedom, 1) for part, freedom in parts)
    return float(np.sqrt(variance)), float(variance**2 / spread)


def _p_of_t(difference: Any, error: Any, freedom: Any) -> float:
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    return float(2 * stats.t.sf(abs(difference) / error, freedom))


def compare_pairs(differences: Sequence[Any]) -> "Comparison":
    """Returns the `Comparison` of pairs without stored predictions.

    p and the interval come from a paired t test. With one pair, or with equal
    differences, the spread is unknown. Then there is no interval, and p is the
    share of sign flips with a mean at least as far from zero.

    Args:
        differences: List of at least one number.
    """
    values = np.asarray(differences, "float64")
    count, mean = len(values), float(np.mean(differences))
    if np.ptp(values) <= 1e-9 * np.abs(values).max():
        p = 2.0 ** (1 - count) if mean else 1.0
        return Comparison(mean, np.nan, float(count - 1), p, count)
    error = float(np.std(values, ddof=1) / np.sqrt(count))
    p = _p_of_t(mean, error, count - 1)
    return Comparison(mean, error, float(count - 1), p, count)


def holm(p_values: Any) -> list[float]:
    """Returns p values corrected for their number by Holm's method (1979).

    At a level of 5 %, the chance of any false positive is at most 5 %.
    """
    order = np.argsort(p_values, kind="stable")
    corrected, least = np.empty(len(p_values)), 0.0
    for rank, place in enumerate(order):
        own = min(1.0, (len(p_values) - rank) * p_values[place])
        least = max(least, own)
        corrected[place] = least
    return corrected.tolist()
