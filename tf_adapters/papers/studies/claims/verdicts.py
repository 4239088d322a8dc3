"""Decides on a claim from a measured difference.

A claim says that one side is higher (or varies more), or with `within` or
`at_most_behind` that two sides differ by less than a margin. p is corrected for
the number of the study's claims (Holm), intervals too (Bonferroni).

- shown: p is below 0.05, and the difference has the claim's sign.
- within: the difference is smaller than the claim's margin, by one-sided tests
  whose p is below 0.05.
- the other way: p is below 0.05, and the sign is the opposite.
- smaller than half of the printed: the interval ends below half of the
  difference that the paper prints for the measured tasks.
- not shown: the interval is completely beyond the claim's margin.
- too small to tell: none of these, or both sides give the same answer to every
  example, like runs that learned nothing.
- not testable here: this form of the study cannot test the claim.
- not measured: there is no pair to compare.
"""

from tf_adapters.papers.studies.claims.comparison import Comparison
from tf_adapters.papers.studies.grid.claim import Claim

LEVEL = 0.05
SHOWN, WITHIN, OTHER_WAY = "shown", "within", "the other way"
LESS_THAN_HALF = "smaller than half of the printed"
NOT_SHOWN, TOO_SMALL = "not shown", "too small to tell"
NOT_TESTABLE, NOT_MEASURED = "not testable here", "not measured"
# Explains the verdicts in reports.
HOW = (
    "Shown: p is below 0.05, and the sign is the claim's. The other way: p is "
    "below 0.05, and the sign is the opposite. Within: one-sided tests show "
    "that the difference is smaller than the margin that the claim states. "
    "Smaller than half of the printed: the interval ends below half of the "
    "difference that the paper prints for these tasks. Not shown: the interval "
    "is beyond the claim's margin. Too small to tell: none of these. p is "
    "corrected for the number of claims in this study (Holm). The intervals "
    "shown are 95 % intervals; verdicts use wider ones (Bonferroni). Nothing "
    "is corrected for the claims of other studies."
)


def scale(claim: Claim) -> int:
    """Returns the factor for display: 100 for metrics, 1 for other values."""
    return 1 if claim.of else 100


def p_of(claim: Claim, comparison: Comparison) -> float:
    """Returns the p value that decides on a claim, before Holm's correction."""
    if claim.within is not None:
        return comparison.p_within(claim.within / scale(claim))
    if claim.at_most_behind is not None:
        return comparison.p_above(-claim.at_most_behind / scale(claim))
    return comparison.p


def decide(
    claim: Claim,
    comparison: Comparison,
    corrected_p: float,
    number: int,
    printed: float | None,
) -> str:
    """Returns the verdict on a measured claim, such as `"shown"`.

    Args:
        claim: The claim.
        comparison: The measured difference.
        corrected_p: p value from `p_of`, after Holm's correction.
        number: Number of claims that were measured.
        printed: The difference that the paper prints, or `None`.
    """
    low, high = (
        end * scale(claim) for end in comparison.interval(1 - LEVEL / number)
    )
    if comparison.all_alike:
        return TOO_SMALL
    if claim.margin is not None:
        if corrected_p < LEVEL:
            return WITHIN
        too_high = claim.within is not None and low > claim.within
        return NOT_SHOWN if too_high or high < -claim.margin else TOO_SMALL
    if corrected_p < LEVEL:
        return SHOWN if comparison.difference > 0 else OTHER_WAY
    if printed is not None and high < printed / 2:
        return LESS_THAN_HALF
    return TOO_SMALL
