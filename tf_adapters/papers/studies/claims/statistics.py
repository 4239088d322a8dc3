"""Tests whether the difference between a claim's two sides is significant.

There are two kinds of evidence. If predictions are stored, `bootstrap`
resamples examples and adds the variance over seeds. Otherwise `compare_pairs`
uses only the differences of pairs of runs. All sampling is seeded.

Seeds are not resampled. Without a true difference, three seeds agree in sign by
chance in a quarter of the cases, and then every resample of them agrees too.
Instead, the variance over seeds goes into a t distribution, whose degrees of
freedom account for the small number of seeds (docs/studies.md).
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

from tf_adapters.papers.studies.claims.comparison import Comparison
from tf_adapters.papers.studies.claims.comparison import add_variances
from tf_adapters.papers.studies.claims.comparison import p_of_t

# Largest product of examples and draws for which counts are held in memory.
_AT_ONCE = 2_000_000
# A standard error below this share of the largest difference is from rounding.
_NO_SPREAD = 1e-9


@dataclasses.dataclass(frozen=True)
class Difference:
    """The difference between two runs, one of each side.

    Attributes:
        value: The difference, in the unit of the metric.
        setting: See `Pair`.
        group: See `Pair`.
        sample: See `Pair`.
    """

    value: float
    setting: Hashable = None
    group: Hashable = None
    sample: Hashable = None


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two runs, one of each side, that differ only in the compared settings.

    Attributes:
        setting: Hashable value that identifies all settings that are not
            compared, except the seed.
        examples: Hashable value that identifies the set of examples.
        count: Number of examples.
        high: Function that computes the metric of the run that the claim says
            is better. It takes an array `(draws, examples)`, how often each
            bootstrap draw contains each example, and returns `(draws,)`.
        low: The same function for the other run.
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

    def differences(self, counts: np.ndarray) -> Any:
        """Returns the difference `high - low` of the metrics in each draw."""
        return self.high(counts) - self.low(counts)


def bootstrap(
    pairs: Sequence[Any], draws: int = 2000, seed: int = 0
) -> Comparison:
    """Returns the `Comparison` of pairs whose predictions are stored.

    The difference is the mean over settings of the mean over their seeds. Its
    variance has two parts. The first is the bootstrap variance over examples:
    all pairs and both sides use the same sample of a set of examples. The
    second is the variance of the mean over seeds, computed once for settings
    that are measured on the same runs. Settings, such as tasks, are not
    resampled. The interaction of seeds and examples counts in both parts, so
    the interval is slightly too wide. If no draw differs from another, as with
    one test example, the differences are compared by `compare_pairs`, or by a
    sign test over the examples of the smallest set if that has the smaller p.

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
    parts: list[Any] = [(np.var(drawn, ddof=1), sum(sets.values()) - len(sets))]
    parts += _of_seeds(pairs, weights, whole)
    error, freedom = add_variances(parts)
    p = p_of_t(difference, error, freedom)
    if difference and error <= _NO_SPREAD * max(map(abs, whole)):
        alone = compare_pairs(_differences(pairs, whole))
        error, freedom = alone.error, alone.freedom
        p = min(alone.p, 2.0 ** (1 - min(sets.values())))
    return Comparison(
        difference,
        error,
        freedom,
        p,
        len(pairs),
        _least_seeds(pairs),
        sum(sets.values()),
        test="bootstrap",
    )


def _differences(pairs: Sequence[Any], values: Any) -> list[Difference]:
    return [
        Difference(value, pair.setting, pair.group, pair.sample)
        for pair, value in zip(pairs, values, strict=True)
    ]


def _sample(number: Any, pair: Any) -> Any:
    return number if pair.sample is None else pair.sample


def _least_seeds(pairs: Iterable[Any]) -> Any:
    samples = collections.defaultdict(set)
    for number, pair in enumerate(pairs):
        samples[pair.setting].add(_sample(number, pair))
    return min(map(len, samples.values()))


def _draw(
    pairs: Iterable[Any], weights: Any, sets: Any, draws: int, generator: Any
) -> np.ndarray:
    """Returns the weighted sum of pairs' differences in each bootstrap draw.

    `sets` is a dict from `Pair.examples` to the number of examples.
    """
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


def _counts(draws: int, count: Any, generator: Any) -> Any:
    """Draws bootstrap samples of `count` examples.

    Returns an array `(draws, count)`: how often each draw has each example.
    """
    places = generator.integers(count, size=(draws, count))
    places += count * np.arange(draws)[:, None]
    counts = np.bincount(places.ravel(), minlength=draws * count)
    return counts.reshape(draws, count)


def _of_seeds(pairs: Sequence[Any], weights: Any, values: Any) -> Iterator[Any]:
    """Yields the variance of a mean difference that is due to seeds.

    Yields a pair for each group (see `Pair`) with several seeds: the variance
    and its degrees of freedom. Only deviations from the mean of each setting
    count, so that a missing run does not look like variation between seeds.

    Args:
        pairs: List of `Pair`.
        weights: The weight of each pair in the mean difference.
        values: The difference of each pair.
    """
    of_settings = collections.defaultdict(list)
    for pair, value in zip(pairs, values, strict=True):
        of_settings[pair.setting].append(value)
    means = {key: np.mean(some) for key, some in of_settings.items()}
    groups = collections.defaultdict(lambda: collections.defaultdict(float))
    for number, (pair, weight, value) in enumerate(
        zip(pairs, weights, values, strict=True)
    ):
        group = pair.setting if pair.group is None else pair.group
        deviation = weight * (value - means[pair.setting])
        groups[group][_sample(number, pair)] += deviation
    for sums in groups.values():
        count = len(sums)
        if count > 1:
            squares = sum(deviation**2 for deviation in sums.values())
            yield count / (count - 1) * squares, count - 1


def _of_samples(pairs: Iterable[Any]) -> list[Difference]:
    """Returns a `Difference` without a setting for each setting and sample.

    Differences of the same setting and sample are averaged, because they vary
    together.
    """
    samples = collections.defaultdict(list)
    for number, pair in enumerate(pairs):
        key = (pair.setting, _sample(number, pair))
        samples[key].append(pair.value)
    return [Difference(float(np.mean(some))) for some in samples.values()]


def compare_pairs(pairs: Sequence[Any]) -> Comparison:
    """Returns the `Comparison` of pairs without stored predictions.

    The difference is the mean over settings of the mean over their samples, as
    in `bootstrap`. If each setting has several samples, such as seeds, the
    standard error is that of the mean over samples, and the variance between
    settings does not count. Otherwise all samples are those of one setting, as
    in a paired t test. With one sample, or with equal differences, the spread
    is unknown. Then there is no interval, and p is the share of sign flips with
    a mean at least as far from zero.

    Args:
        pairs: List of `Difference`, at least one.
    """
    if _least_seeds(pairs) == 1:
        pairs = _of_samples(pairs)
    settings = collections.Counter(pair.setting for pair in pairs)
    weights = [1 / settings[pair.setting] / len(settings) for pair in pairs]
    values = [pair.value for pair in pairs]
    mean, count = float(np.dot(weights, values)), len(pairs)
    error, freedom = add_variances(_of_seeds(pairs, weights, values))
    if error <= _NO_SPREAD * max(map(abs, values)):
        # Without one sign for all, other sign flips have means as large.
        has_one_sign = len({np.sign(value) for value in values}) == 1
        p = 2.0 ** (1 - count) if has_one_sign and mean else 1.0
        return Comparison(mean, np.nan, float(count - 1), p, count)
    p = p_of_t(mean, error, freedom)
    return Comparison(mean, error, freedom, p, count)
