"""Writes the sentences of verdicts on claims."""

from collections.abc import Iterator
from typing import Any

from tf_adapters.launch.progress_lines import counted
from tf_adapters.papers.studies.grid.settings import label_of


def explain(
    claim: Any, verdict: Any, comparison: Any, corrected_p: Any, one_seed: bool
) -> str:
    """Returns a verdict as a sentence, with its numbers.

    Args:
        claim: `paper.Claim`.
        verdict: `"shown"`, `"not shown"` or `"too small to tell"`.
        comparison: `statistics.Comparison`.
        corrected_p: p after Holm's correction.
        one_seed: Whether all runs of the study have the same seed.
    """
    difference = comparison.difference * scale(claim)
    words = "higher" if difference >= 0 else "lower"
    number = _number(abs(difference), claim)
    parts = [_interval(claim, comparison)]
    if not comparison.is_alone:
        parts.append(f"corrected p {_p(corrected_p)}")
    parts += _evidence(claim, comparison)
    text = (
        f"{verdict.capitalize()}: {label_of(claim.higher)} is {number} {words} "
        f"than {label_of(claim.than)} ({', '.join(parts)})"
    )
    if claim.printed is not None:
        text += f"; the paper prints {_number(claim.printed, claim)}"
    return f"{text}.{_caveat(comparison, one_seed)}"


def scale(claim: Any) -> int:
    """Returns the factor for display: 100 for metrics, 1 for other values."""
    return 1 if claim.of else 100


def _interval(claim: Any, comparison: Any) -> str:
    low, high = (end * scale(claim) for end in comparison.interval())
    if comparison.is_alone:
        return "no interval and no p, since there is one difference only"
    if low != low:
        return "no interval, since all differences are equal"
    form = "+.3g" if claim.of else "+.1f"
    return f"95 % interval {low:{form}} to {high:{form}}"


def _evidence(claim: Any, comparison: Any) -> Iterator[str]:
    """Yields phrases on the evidence for a verdict."""
    if comparison.seeds is None:
        pairs = counted(comparison.pairs, "pair")
        yield pairs if claim.of else f"{pairs} without predictions"
        return
    yield counted(comparison.seeds, "seed")
    yield counted(comparison.pairs, "pair")
    yield counted(comparison.examples, "example")


def _caveat(comparison: Any, one_seed: Any) -> str:
    if comparison.all_alike:
        return " Both sides answer every example alike."
    if comparison.seeds == 1:
        return (
            " With one seed the interval covers only the choice of examples, "
            "not the choice of the seed."
        )
    if comparison.seeds is None and one_seed and comparison.pairs > 1:
        return (
            " All pairs have the same seed, so the interval does not cover "
            "the choice of the seed."
        )
    return ""


def _number(value: Any, claim: Any) -> str:
    unit = f" in {claim.value}" if claim.of else " points"
    return (f"{value:.3g}" if claim.of else f"{value:.1f}") + unit


def _p(value: Any) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"
