"""Simulates studies to measure the errors of the tests of claims.

For each test, it prints how often a claim is confirmed if it is just not true,
which should be at most 5 %, and how often if it is true. The accuracy of a run
varies with its seed, and both runs of a pair disagree on some examples.

    python benchmarks/claim_errors.py
"""

import argparse
from collections.abc import Callable

import numpy as np

from tf_adapters.papers.studies.claims import resampling
from tf_adapters.papers.studies.claims import spreads
from tf_adapters.papers.studies.claims import statistics
from tf_adapters.report.content import ReportTable
from tf_adapters.report.content import as_text

LEVEL = 0.05
Test = Callable[[np.random.Generator], float]
# Distributions of the results of runs: bounded tails, long tails, skewed.
SHAPES: dict[str, Callable[..., np.ndarray]] = {
    "normal": lambda generator, size: generator.normal(size=size),
    "long tails": lambda generator, size: generator.standard_t(3, size=size),
    "skewed": lambda generator, size: generator.exponential(size=size),
}


def rate(test: Test, simulations: int, seed: int = 0) -> float:
    """Returns the share of simulated studies that confirm the claim.

    Args:
        test: Function that simulates a study and returns the claim's p.
        simulations: Number of studies.
        seed: Integer.
    """
    generator = np.random.default_rng(seed)
    return float(np.mean([test(generator) < LEVEL for _ in range(simulations)]))


def spread_test(
    runs: int, boxes: int, ratio: float, shape: str, wider: int = 1
) -> Test:
    """Returns a study of boxes whose spreads have a ratio.

    Args:
        runs: Number of runs in a box.
        boxes: Number of pairs.
        ratio: Spread of the first side, if that of the second is 1.
        shape: Key of `SHAPES`.
        wider: Number of boxes that the first side of each pair has, such as
            one for each size of adapters. The second side has one.
    """

    def test(generator: np.random.Generator) -> float:
        pairs = []
        for _ in range(boxes):
            *high, low = SHAPES[shape](generator, (wider + 1, runs))
            pairs.append((ratio * np.asarray(high), [low]))
        found = spreads.compare_spreads(pairs, draws=500)
        return found.p if found.difference > 0 or ratio == 1 else 1.0

    return test


def margin_test(
    seeds: int, deviation: float, difference: float, margin: float
) -> Test:
    """Returns a study of two sides that differ by some points.

    Each side has an accuracy of 80 % on 1,000 examples. Half of the examples
    have the same answer in all runs.

    Args:
        seeds: Number of seeds of each side.
        deviation: Standard deviation of a run's accuracy, in points.
        difference: True difference, in points.
        margin: The claim's margin, in points.
    """

    def test(generator: np.random.Generator) -> float:
        shared = generator.random(1000)
        pairs = []
        for seed in range(seeds):
            functions = [
                resampling.mean(
                    _answers(generator, shared, 80 + gain, deviation)
                )
                for gain in (difference, 0.0)
            ]
            pairs.append(
                statistics.Pair("task", "set", 1000, *functions, sample=seed)
            )
        found = statistics.bootstrap(pairs, draws=200)
        return found.p_within(margin / 100)

    return test


def _answers(
    generator: np.random.Generator,
    shared: np.ndarray,
    accuracy: float,
    deviation: float,
) -> np.ndarray:
    """Returns whether each answer of a run is correct."""
    wanted = (accuracy + generator.normal(0, deviation)) / 100
    own = generator.random(len(shared)) < 0.5
    luck = np.where(own, generator.random(len(shared)), shared)
    return luck < wanted


def spread_table(simulations: int) -> ReportTable:
    """Returns how often claims about spreads are confirmed."""
    rows = []
    for runs, boxes in ((5, 1), (8, 1), (20, 1), (5, 5), (20, 5)):
        for shape in SHAPES:
            shares = [
                rate(spread_test(runs, boxes, ratio, shape), simulations)
                for ratio in (1, 2, 3)
            ]
            sizes = (str(runs), str(boxes), shape)
            rows.append((*sizes, *map(_percent, shares)))
    header = ("runs", "pairs of boxes", "shape")
    header += ("ratio 1 (either way)", "2", "3")
    return ReportTable("Spreads", header, rows)


def margin_table(simulations: int) -> ReportTable:
    """Returns how often claims with a margin are confirmed."""
    rows = []
    for seeds, deviation in ((3, 0.5), (3, 1.0), (5, 1.0), (10, 1.0)):
        shares = [
            rate(margin_test(seeds, deviation, *points), simulations)
            for points in ((1.5, 1.5), (0.0, 1.5), (0.0, 3.0))
        ]
        rows.append((str(seeds), str(deviation), *map(_percent, shares)))
    header = ("seeds", "deviation of a run")
    header += ("difference 1.5, margin 1.5", "0, 1.5", "0, 3")
    return ReportTable("Margins", header, rows)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def main() -> None:
    """Prints a table for each kind of test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=1000)
    simulations = parser.parse_args().simulations
    for table in (spread_table, margin_table):
        print(as_text(table(simulations)), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
