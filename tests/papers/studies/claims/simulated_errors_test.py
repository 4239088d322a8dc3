"""Tests how often claims are confirmed in simulated studies."""

import pytest

from benchmarks import claim_errors

# Three standard errors of a share of 5 % in 400 simulations are 3.3 points.
SIMULATIONS, HIGHEST = 400, 0.083

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("runs", "boxes"), [(8, 1), (20, 1), (5, 5)])
@pytest.mark.parametrize("shape", ["normal", "long tails"])
def test_equal_spreads_are_rarely_told_apart(runs, boxes, shape):
    test = claim_errors.spread_test(runs, boxes, 1, shape)
    assert claim_errors.rate(test, SIMULATIONS) <= HIGHEST


@pytest.mark.parametrize("wider", [3, 6])
def test_several_boxes_against_one_are_rarely_told_apart(wider):
    test = claim_errors.spread_test(5, 1, 1, "normal", wider)
    assert claim_errors.rate(test, SIMULATIONS) <= HIGHEST


def test_a_spread_three_times_as_large_is_found():
    test = claim_errors.spread_test(5, 5, 3, "normal")
    assert claim_errors.rate(test, 100) > 0.8


@pytest.mark.parametrize(("seeds", "deviation"), [(3, 0.5), (3, 1.0), (5, 1.0)])
def test_a_difference_of_the_margin_is_rarely_within_it(seeds, deviation):
    test = claim_errors.margin_test(seeds, deviation, 3.0, 3.0)
    assert claim_errors.rate(test, SIMULATIONS) <= HIGHEST


def test_equal_sides_are_within_a_wide_margin():
    test = claim_errors.margin_test(5, 0.5, 0.0, 3.0)
    assert claim_errors.rate(test, 100) > 0.6
