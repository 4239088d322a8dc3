"""Verdicts on a paper's claims, from measured differences.

- shown: p, corrected for the number of the study's claims, is below 0.05, and
  the difference has the claim's sign.
- not shown: the upper end of the Bonferroni-corrected interval is below half
  the printed difference (below zero if none is printed).
- too small to tell: neither of the two, or both sides give the same answer to
  every example, like runs that learned nothing.
- not measured: there is no pair to compare.
"""

from collections.abc import Sequence
import dataclasses
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.papers.studies.claims import claim_pairs
from tf_adapters.papers.studies.claims import figure_pairs
from tf_adapters.papers.studies.claims import sentences
from tf_adapters.papers.studies.claims import statistics

if TYPE_CHECKING:
    from pathlib import Path

    from tf_adapters.launch.planned_run import Run
    from tf_adapters.papers.studies.claims.statistics import Comparison
    from tf_adapters.papers.studies.grid.declaration import Study


LEVEL = 0.05
# Explains the verdicts in reports.
HOW = (
    "Shown: p, corrected for the number of claims (Holm), is below 0.05, and "
    "the sign is the claim's. Not shown: the upper end of the interval, "
    "corrected in the same way, is below half of the printed difference, or "
    "below zero if none is printed. Too small to tell: neither."
)
SHOWN, NOT_SHOWN = "shown", "not shown"
TOO_SMALL, NOT_MEASURED = "too small to tell", "not measured"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A claim and its result.

    Attributes:
        claim: `paper.Claim`.
        verdict: One of the four verdicts in the docstring of the module.
        sentence: The result in one sentence, with its numbers.
        comparison: `statistics.Comparison`, or `None` if nothing was measured.
        corrected_p: p after Holm's correction, or `None`.
    """

    claim: object
    verdict: str
    sentence: str
    comparison: statistics.Comparison | None = None
    corrected_p: float | None = None


def judge(
    study: "Study",
    runs: "Sequence[Run]",
    rows: list[dict[str, Any]],
    folder: "Path",
    tables: dict[str, Any],
) -> "list[Verdict]":
    """Returns a `Verdict` on each claim of a study.

    Args:
        study: `Study`.
        runs: List of `Run`.
        rows: List of dicts, from `cells.chosen_rows`.
        folder: The study's folder.
        tables: Dict from a figure's name to the paths of its tables.
    """
    finished = [row for row in rows if row["state"] == "finished"]
    claims = [_narrow(claim, runs) for claim in study.claims]
    found = [
        _of_figure(claim, runs, tables.get(claim.of, []))
        if claim.of
        else _of_runs(claim, study, runs, finished, folder)
        for claim in claims
    ]
    measured = [one for one in found if not isinstance(one, str)]
    corrected = iter(statistics.holm([one.p for one in measured]))
    one_seed = len({run.settings.get("seed") for run in runs}) == 1
    return [
        Verdict(claim, NOT_MEASURED, f"Not measured: {one}.")
        if isinstance(one, str)
        else _verdict(claim, one, next(corrected), len(measured), one_seed)
        for claim, one in zip(claims, found, strict=True)
    ]


def _narrow(claim: Any, runs: Any) -> Any:
    """Drops a claim's values that no run has."""
    return dataclasses.replace(
        claim,
        higher=_narrow_side(claim.higher, runs),
        than=_narrow_side(claim.than, runs),
    )


def _narrow_side(side: Any, runs: Any) -> dict[Any, Any]:
    narrowed = dict(side)
    for key, values in side.items():
        if isinstance(values, list):
            there = [run.settings.get(key) for run in runs]
            kept = [value for value in values if value in there] or values
            narrowed[key] = kept[0] if len(kept) == 1 else kept
    return narrowed


def _of_figure(claim: Any, runs: Any, paths: Any) -> "str | Comparison":
    """Returns a `Comparison`, or a text with the reason why there is none."""
    if not paths:
        return f"the figure `{claim.of}` was not made"
    keys = {key for run in runs for key in run.point}
    differences = figure_pairs.figure_differences(claim, paths, keys)
    if isinstance(differences, str):
        return differences
    return statistics.compare_pairs(differences)


def _of_runs(
    claim: Any, study: "Study", runs: Any, rows: Any, folder: "Path"
) -> "Comparison | str":
    """Returns a `Comparison`, or a text with the reason why there is none."""
    split = study.report.split
    rows = [row for row in rows if row[split] is not None]
    matched = claim_pairs.match_runs(claim, runs, rows, study.select_over)
    if not matched:
        return (
            "no finished run on one side has a finished counterpart on the "
            "other"
        )
    pairs = claim_pairs.predicted_pairs(matched, runs, folder, split)
    if pairs is not None:
        return statistics.bootstrap(pairs)
    return statistics.compare_pairs(
        [high[split] - low[split] for _, high, low in matched]
    )


def _verdict(
    claim: Any, comparison: Any, corrected_p: Any, number: Any, one_seed: Any
) -> "Verdict":
    least = (claim.printed or 0.0) / 2 / sentences.scale(claim)
    _, upper = comparison.interval(1 - LEVEL / number)
    verdict = TOO_SMALL
    if corrected_p < LEVEL and comparison.difference > 0:
        verdict = SHOWN
    elif upper < max(0.0, least) and not comparison.all_alike:
        verdict = NOT_SHOWN
    sentence = sentences.explain(
        claim, verdict, comparison, corrected_p, one_seed
    )
    return Verdict(claim, verdict, sentence, comparison, corrected_p)


def claim_rows(verdicts: Any) -> list[dict[str, Any]]:
    """Returns the rows of `claims.csv`, a dict for each verdict."""
    return [_row(verdict) for verdict in verdicts]


def _row(verdict: Any) -> dict[str, Any]:
    claim, comparison = verdict.claim, verdict.comparison
    row = {
        "says": claim.says,
        "verdict": verdict.verdict,
        "sentence": verdict.sentence,
        "printed": claim.printed,
    }
    if comparison is None:
        return row
    scale = sentences.scale(claim)
    low, high = (_known(end * scale) for end in comparison.interval())
    alone = comparison.is_alone
    return row | {
        "difference": comparison.difference * scale,
        "low": low,
        "high": high,
        "p": None if alone else comparison.p,
        "corrected_p": None if alone else verdict.corrected_p,
        "pairs": comparison.pairs,
        "seeds": comparison.seeds,
        "examples": comparison.examples,
        "test": "pairs" if comparison.seeds is None else "bootstrap",
    }


def _known(number: Any) -> Any | None:
    return None if number != number else number


COLUMNS = ("says", "verdict", "sentence", "printed", "difference", "low")
COLUMNS += ("high", "p", "corrected_p", "pairs", "seeds", "examples", "test")
