"""Compares how much the runs on the two sides of a claim vary.

A box holds the runs of one side that differ only in the settings that a claim
names, such as the seed. The spread of a box is the mean absolute deviation of
its metrics from their median. Each run counts as one observation: a box of
twenty seeds counts as twenty.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tf_adapters.papers.studies.claims.comparison import Comparison
from tf_adapters.papers.studies.claims.comparison import p_of_t

Floats = NDArray[np.float64]
Boxes = Sequence[Sequence[float]]
# Fewest runs in a box. Two runs have equal deviations from their median.
FEWEST = 3


def compare_spreads(
    boxes: Sequence[tuple[Boxes, Boxes]],
    draws: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Returns the `Comparison` of the spreads of two sides.

    The difference of the spreads is averaged over the pairs. p comes from a
    permutation test: if the two sides do not differ, the deviations of a pair
    can be exchanged between the sides, also if a side has several boxes. The
    standard error, which gives the interval, and `second_p` come from Brown and
    Forsythe's test (1974), an analysis of variance of the same deviations. With
    several pairs, their variances are added.

    Args:
        boxes: Pairs of sides, which share no runs. A side is a list of boxes,
            and a box is a list of at least `FEWEST` metrics.
        draws: Number of permutations.
        seed: Integer, the seed of the permutations.
    """
    pairs = [(_deviations(high), _deviations(low)) for high, low in boxes]
    difference = float(np.mean([np.mean(h) - np.mean(low) for h, low in pairs]))
    parts = [_variance(high, low) for high, low in pairs]
    error = float(np.sqrt(sum(parts)) / len(pairs))
    runs = sum(len(high) + len(low) for high, low in pairs)
    freedom = float(runs - 2 * len(pairs))
    return Comparison(
        difference,
        error,
        freedom,
        p=_p_of_permutations(pairs, difference, draws, seed),
        pairs=len(pairs),
        test="permutation",
        runs=runs,
        second_p=p_of_t(difference, error, freedom),
    )


def _deviations(boxes: Boxes) -> Floats:
    """Returns the distances of all runs from the medians of their boxes."""
    parts = [np.asarray(box, "float64") for box in boxes]
    return np.concatenate([np.abs(part - np.median(part)) for part in parts])


def _variance(high: Floats, low: Floats) -> float:
    """Returns the variance of the difference between the means of two arrays.

    Both arrays are assumed to have the same variance, which is pooled.
    """
    squares = np.var(high) * len(high) + np.var(low) * len(low)
    pooled = squares / (len(high) + len(low) - 2)
    return float(pooled * (1 / len(high) + 1 / len(low)))


def _p_of_permutations(
    pairs: list[tuple[Floats, Floats]], difference: float, draws: int, seed: int
) -> float:
    """Returns the two-sided p value of a permutation test.

    The p value is twice the share of permutations in the smaller tail.
    """
    generator = np.random.default_rng(seed)
    drawn = sum(_permuted(*pair, draws, generator) for pair in pairs)
    drawn = drawn / len(pairs)
    # Rounding must not hide draws that are equal to the measured difference.
    above = np.sum(drawn >= difference - 1e-12)
    below = np.sum(drawn <= difference + 1e-12)
    return min(1.0, 2 * float(1 + min(above, below)) / (1 + draws))


def _permuted(
    high: Floats, low: Floats, draws: int, generator: np.random.Generator
) -> Floats:
    """Exchanges values between two arrays at random, `draws` times.

    Returns an array `(draws,)` with the difference of the means each time.
    """
    both = np.tile(np.concatenate([high, low]), (draws, 1))
    both = generator.permuted(both, axis=1)
    return both[:, : len(high)].mean(axis=1) - both[:, len(high) :].mean(axis=1)
