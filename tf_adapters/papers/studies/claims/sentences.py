"""Writes sentences that explain the verdicts on a paper's claims."""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import math

from tf_adapters.launch.progress_lines import counted
from tf_adapters.papers.studies.claims.comparison import Comparison
from tf_adapters.papers.studies.claims.verdicts import scale
from tf_adapters.papers.studies.grid.claim import Claim
from tf_adapters.papers.studies.grid.settings import label_of


@dataclasses.dataclass(frozen=True)
class Circumstances:
    """Facts about a claim's runs that its sentence mentions.

    Attributes:
        printed: The difference that the paper prints, or `None`.
        one_seed: Whether all runs of the study have the same seed.
        rates: The learning rates of each side, or `None` if the study tuned
            them.
    """

    printed: float | None = None
    one_seed: bool = False
    rates: tuple[Sequence[float], Sequence[float]] | None = None


def explain(
    claim: Claim,
    verdict: str,
    comparison: Comparison,
    corrected_p: float,
    around: Circumstances,
) -> str:
    """Returns sentences that explain a verdict on a claim, with the numbers.

    Args:
        claim: The claim.
        verdict: One of the words in `verdicts`.
        comparison: The measured difference.
        corrected_p: p value after Holm's correction.
        around: Further facts about the claim's runs.
    """
    parts = [_interval(claim, comparison)]
    if not comparison.is_alone:
        parts.append(f"corrected p {_p(corrected_p)}")
    parts += _evidence(claim, comparison)
    text = f"{verdict.capitalize()}: {_difference(claim, comparison)}"
    text += f" ({', '.join(parts)})"
    if around.printed is not None:
        text += f"; the paper prints {_number(around.printed, claim)}"
    sentences = [f"{text}.", *_caveats(comparison, around)]
    return " ".join(sentences)


def _difference(claim: Claim, comparison: Comparison) -> str:
    difference = comparison.difference * scale(claim)
    number = _number(abs(difference), claim)
    higher, than = label_of(claim.higher), label_of(claim.than)
    if claim.spreads:
        word = "larger" if difference >= 0 else "smaller"
        return f"the spread of {higher} is {number} {word} than that of {than}"
    word = "higher" if difference >= 0 else "lower"
    text = f"{higher} is {number} {word} than {than}"
    if claim.margin is None:
        return text
    kind = "either way" if claim.within else "below"
    return f"{text}, where the claim allows {claim.margin:g} {kind}"


def _interval(claim: Claim, comparison: Comparison) -> str:
    low, high = (end * scale(claim) for end in comparison.interval())
    if comparison.is_alone:
        return "no interval and no p, since there is one difference only"
    if low != low:
        return "no interval, since the samples do not differ"
    form = "+.3g" if claim.of else "+.1f"
    return f"95 % interval {low:{form}} to {high:{form}}"


def _evidence(claim: Claim, comparison: Comparison) -> Iterator[str]:
    """Yields phrases that say how much was measured, such as "3 seeds"."""
    if comparison.second_p is not None:
        yield f"Brown-Forsythe p {_p(comparison.second_p)}"
        pairs = counted(comparison.pairs, "pair")
        yield f"{counted(comparison.runs, 'run')} in {pairs} of boxes"
        return
    if comparison.seeds is None:
        pairs = counted(comparison.pairs, "pair")
        yield pairs if claim.of else f"{pairs} without predictions"
        return
    yield counted(comparison.seeds, "seed")
    yield counted(comparison.pairs, "pair")
    yield counted(comparison.examples, "example")


def _caveats(comparison: Comparison, around: Circumstances) -> Iterator[str]:
    if comparison.all_alike and comparison.second_p is not None:
        yield "On each side all runs of a box have the same score."
    elif comparison.all_alike:
        yield "Both sides answer every example alike."
    elif comparison.seeds == 1 and not math.isnan(comparison.error):
        yield (
            "With one seed the interval covers only the choice of examples, "
            "not the choice of the seed."
        )
    elif comparison.seeds is None and around.one_seed and comparison.pairs > 1:
        yield (
            "All pairs have the same seed, so the interval does not cover the "
            "choice of the seed."
        )
    if around.rates is not None:
        yield _rates(*around.rates)


def _rates(higher: Sequence[float], than: Sequence[float]) -> str:
    first, second = (
        " or ".join(f"{rate:g}" for rate in rates) for rates in (higher, than)
    )
    if first == second:
        return f"The learning rate was not tuned: {first}."
    return f"The learning rates were not tuned: {first} and {second}."


def _number(value: float, claim: Claim) -> str:
    unit = f" in {claim.value}" if claim.of else " points"
    return (f"{value:.3g}" if claim.of else f"{value:.1f}") + unit


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"
