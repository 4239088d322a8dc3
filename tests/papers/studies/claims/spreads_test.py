"""Tests the comparison of spreads, and its errors in simulated studies."""

import numpy as np
import pytest
from scipy import stats

from tf_adapters.papers.studies.claims import spreads


def test_of_one_pair_of_boxes_the_second_p_is_scipys():
    generator = np.random.default_rng(1)
    high, low = generator.normal(0, 2, 9), generator.normal(5, 1, 12)
    found = spreads.compare_spreads([([high], [low])])
    theirs = stats.levene(high, low, center="median")
    assert found.second_p == pytest.approx(theirs.pvalue)
    theirs = stats.permutation_test(
        (abs(high - np.median(high)), abs(low - np.median(low))),
        lambda a, b, axis: np.mean(a, axis) - np.mean(b, axis),
        vectorized=True,
        n_resamples=10_000,
        rng=2,
    )
    assert found.difference == pytest.approx(theirs.statistic)
    assert found.p == pytest.approx(theirs.pvalue, abs=0.01)
    assert (found.pairs, found.runs, found.freedom) == (1, 21, 19)


def test_several_pairs_of_boxes_count_together():
    narrow, wide = [0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 3.0, 6.0, 9.0, 12.0]
    one = spreads.compare_spreads([([wide], [narrow])])
    five = spreads.compare_spreads([([wide], [narrow])] * 5)
    assert five.difference == pytest.approx(one.difference)
    assert five.error == pytest.approx(one.error / np.sqrt(5))
    assert one.p > 0.1 and five.p < 0.01
    # A shift of a box, such as a task's, is no spread.
    moved = spreads.compare_spreads([([np.add(wide, 50)], [narrow])])
    assert moved == one


def test_boxes_of_one_side_are_no_pairs_of_their_own():
    narrow, wide = [0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 3.0, 6.0, 9.0, 12.0]
    found = spreads.compare_spreads([([wide, np.add(wide, 50)], [narrow])])
    assert (found.pairs, found.runs, found.freedom) == (1, 15, 13)
    distances = [6, 3, 0, 3, 6] * 2, [2, 1, 0, 1, 2]
    assert found.difference == pytest.approx(2.4)
    assert found.second_p == pytest.approx(stats.f_oneway(*distances).pvalue)


def test_equal_spreads_do_not_differ():
    values = [1.0, 2.0, 4.0]
    found = spreads.compare_spreads([([values], [values])])
    assert (found.difference, found.p) == (0.0, 1.0)
