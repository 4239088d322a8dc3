"""Tests the verdicts that a margin, a printed number or a form decide."""

import pytest

from tf_adapters.papers.studies.claims import verdicts
from tf_adapters.papers.studies.claims.comparison import Comparison
from tf_adapters.papers.studies.claims.comparison import p_of_t
from tf_adapters.papers.studies.grid.claim import Claim


def _verdict(difference, error, printed=None, **claim):
    """Returns a verdict on a difference in points, with 20 degrees."""
    values = difference / 100, error / 100, 20.0
    comparison = Comparison(*values, p_of_t(*values), 3)
    claim = Claim("It is.", {}, {}, **claim)
    p = verdicts.p_of(claim, comparison)
    return verdicts.decide(claim, comparison, p, 1, printed)


@pytest.mark.parametrize(
    ("difference", "error", "expected"),
    [
        (0.2, 0.5, "within"),
        (-0.2, 0.5, "within"),
        (0.2, 1.5, "too small to tell"),
        (1.4, 0.5, "too small to tell"),  # The interval ends beyond 1.5.
        (5.0, 0.5, "not shown"),
        (-5.0, 0.5, "not shown"),
    ],
)
def test_two_sides_are_within_a_margin(difference, error, expected):
    assert _verdict(difference, error, within=1.5) == expected


@pytest.mark.parametrize(
    ("difference", "expected"),
    [(5.0, "within"), (-0.2, "within"), (-1.0, "too small to tell")]
    + [(-5.0, "not shown")],
)
def test_one_side_may_be_ahead_by_any_number(difference, expected):
    assert _verdict(difference, 0.5, at_most_behind=1.5) == expected


@pytest.mark.parametrize(
    ("difference", "printed", "expected"),
    [
        (3.0, 10.0, "shown"),  # The sentence has both numbers.
        (0.5, 10.0, "smaller than half of the printed"),
        (0.5, 2.0, "too small to tell"),
        (0.5, None, "too small to tell"),
        (-3.0, 10.0, "the other way"),
        (-3.0, None, "the other way"),
    ],
)
def test_a_difference_with_a_sign(difference, printed, expected):
    assert _verdict(difference, 0.5, printed) == expected


def test_a_printed_number_is_that_of_the_measured_tasks():
    claim = Claim("", {}, {}, printed={"rte": 6.0, "mrpc": 4.0, "average": 1.0})
    assert claim.printed_for(["rte"]) == 6.0
    assert claim.printed_for(["mrpc", "rte"]) == 5.0
    # The paper has no number for SICK.
    assert claim.printed_for(["rte", "sick"]) == claim.printed_for([]) == 1.0
    assert Claim("", {}, {}, printed={"rte": 6.0}).printed_for(["sick"]) is None
    assert Claim("", {}, {}, printed=2.0).printed_for(["sick"]) == 2.0
