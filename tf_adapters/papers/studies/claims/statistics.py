"""How sure a difference between two sides is: pure functions of numbers.

Two kinds of evidence. Where predictions are stored, `bootstrap` draws examples
again and adds what seeds vary; where there are none, `compare_pairs` has the
differences of pairs of runs alone. Nothing here draws without a seed.

Why seeds are not drawn again too: without any difference three of them have one
sign by chance in a quarter of the cases, and then every draw of them has it.
Their variance goes into a t distribution instead, whose degrees of freedom say
how few they are (docs/studies.md).
"""

import collections
import dataclasses

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
# Examples times draws that are in memory at a time.
_AT_ONCE = 2_000_000


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A difference between two sides, in the unit of the metric.

    Attributes:
        difference: The mean over pairs.
        error: Its standard error, NaN where one pair is all there is.
        freedom: Degrees of freedom of that.
        p: Two-sided, of no difference.
        pairs: Number of pairs.
        seeds: The least number of seeds, or `None` where pairs are all that is
            known.
        examples: Number of different examples, 0 without predictions.
    """

    difference: float
    error: float
    freedom: float
    p: float
    pairs: int
    seeds: int | None = None
    examples: int = 0

    @property
    def all_alike(self):
        """Whether no draw of the examples makes any difference."""
        return self.difference == 0 and self.error == 0

    @property
    def is_alone(self):
        """Whether it is one difference without predictions."""
        return self.seeds is None and self.pairs == 1

    def interval(self, confidence=CONFIDENCE):
        """Returns the lower and the upper end, NaN where none is known."""
        width = self.error * stats.t.ppf((1 + confidence) / 2, self.freedom)
        return self.difference - width, self.difference + width


@dataclasses.dataclass(frozen=True)
class Pair:
    """A run of each side, equal in all but what is compared.

    Attributes:
        setting: What both share but the seed; hashable.
        examples: Identifies the set of examples; hashable.
        count: Number of examples.
        high: Function from counts `(draws, examples)` to a metric of each draw.
        low: The same of the other side.
        group: What the settings share that have runs in common, several
            languages for example; `None` where there is one setting.
        sample: Which pairs of a group vary together, their seeds for example;
            `None` where each varies by itself.
    """

    setting: object
    examples: object
    count: int
    high: object
    low: object
    group: object = None
    sample: object = None

    def differences(self, counts):
        """Returns the difference for each draw."""
        return self.high(counts) - self.low(counts)


def bootstrap(pairs, draws=2000, seed=0):
    """Returns the `Comparison` of pairs whose predictions are stored.

    The difference is the mean over settings of the mean over their seeds. Its
    variance has two parts. The first is the bootstrap's over examples: each set
    of examples is drawn in the same way for all pairs and both sides. The
    second is the variance of the mean over seeds; settings of the same runs
    share it. Settings, such as tasks, are not drawn. What seeds and examples
    vary together counts in both parts, so the interval is rather too wide.

    Args:
        pairs: List of `Pair`, of a setting one or more for each seed.
        draws: How often examples are drawn.
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


def _sample(number, pair):
    return number if pair.sample is None else pair.sample


def _least_seeds(pairs):
    samples = collections.defaultdict(set)
    for number, pair in enumerate(pairs):
        samples[pair.setting].add(_sample(number, pair))
    return min(map(len, samples.values()))


def _draw(pairs, weights, sets, draws, generator):
    """Returns the difference in each draw of the examples of all sets."""
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


def _counts(draws, count, generator):
    """Returns how often each draw of as many has each example."""
    places = generator.integers(count, size=(draws, count))
    places += count * np.arange(draws)[:, None]
    counts = np.bincount(places.ravel(), minlength=draws * count)
    return counts.reshape(draws, count)


def _of_seeds(pairs, shares):
    """Yields variance and degrees of freedom of what each group adds.

    Args:
        pairs: List of `Pair`.
        shares: What each adds to the difference.
    """
    groups = collections.defaultdict(lambda: collections.defaultdict(float))
    for number, (pair, share) in enumerate(zip(pairs, shares, strict=True)):
        group = pair.setting if pair.group is None else pair.group
        groups[group][_sample(number, pair)] += share
    for sums in groups.values():
        if len(sums) > 1:
            variance = len(sums) * np.var(list(sums.values()), ddof=1)
            yield variance, len(sums) - 1


def _add(parts):
    """Returns the error of a sum, and Satterthwaite's degrees of freedom."""
    variance = sum(part for part, _ in parts)
    if variance == 0:
        return 0.0, float(max(1, sum(freedom for _, freedom in parts)))
    spread = sum(part**2 / max(freedom, 1) for part, freedom in parts)
    return float(np.sqrt(variance)), float(variance**2 / spread)


def _p_of_t(difference, error, freedom):
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    return float(2 * stats.t.sf(abs(difference) / error, freedom))


def compare_pairs(differences):
    """Returns the `Comparison` of pairs without stored predictions.

    p and the interval come from a paired t test, like the part of the seeds in
    `bootstrap`. With one pair, or with equal differences, the spread is
    unknown: there is no interval, and p is the share of sign flips whose mean
    is as far from zero.

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


def holm(p_values):
    """Returns p values corrected for their number (Holm 1979).

    At a level of 5 %, the chance of any false positive is at most 5 %.
    """
    order = np.argsort(p_values, kind="stable")
    corrected, least = np.empty(len(p_values)), 0.0
    for rank, place in enumerate(order):
        own = min(1.0, (len(p_values) - rank) * p_values[place])
        least = max(least, own)
        corrected[place] = least
    return corrected.tolist()
