"""Judges a paper's claims by measured differences, see `verdicts`."""

import collections
from collections.abc import Sequence
import dataclasses
import json
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.papers.studies.claims import boxes
from tf_adapters.papers.studies.claims import claim_pairs
from tf_adapters.papers.studies.claims import figure_pairs
from tf_adapters.papers.studies.claims import sentences
from tf_adapters.papers.studies.claims import spreads
from tf_adapters.papers.studies.claims import statistics
from tf_adapters.papers.studies.claims import verdicts
from tf_adapters.papers.studies.claims.comparison import Comparison
from tf_adapters.papers.studies.claims.comparison import holm

if TYPE_CHECKING:
    from pathlib import Path

    from tf_adapters.launch.planned_run import Run
    from tf_adapters.papers.studies.grid.declaration import Study


_RATE = "train.learning_rate"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A claim, and the decision whether the study's runs support it.

    Attributes:
        claim: `Claim`.
        verdict: One of the verdicts in the docstring of `verdicts`.
        sentence: The result in one sentence, with its numbers.
        comparison: `Comparison`, or `None` if nothing was measured.
        p: The p value that decides on the claim, or `None`.
        corrected_p: p after Holm's correction, or `None`.
        printed: The difference that the paper prints, or `None`.
    """

    claim: object
    verdict: str
    sentence: str
    comparison: Comparison | None = None
    p: float | None = None
    corrected_p: float | None = None
    printed: float | None = None


def judge(
    study: "Study",
    runs: "Sequence[Run]",
    rows: list[dict[str, Any]],
    folder: "Path",
    tables: dict[str, Any],
) -> list[Any]:
    """Returns a `Verdict` on each claim of a study.

    Args:
        study: `Study`.
        runs: List of `Run`.
        rows: List of dicts, from `cells.chosen_rows`.
        folder: The study's folder.
        tables: Dict from a figure's name to the paths of its tables.
    """
    rows = [row for row in rows if row["state"] == "finished"]
    found = [
        _measured(_narrow(claim, runs), study, runs, rows, folder, tables)
        for claim in study.claims
    ]
    p_values = [one.p for one in found if one.p is not None]
    corrected, number = iter(holm(p_values)), len(p_values)
    return [
        one
        if one.p is None
        else _decided(one, next(corrected), number, runs, rows)
        for one in found
    ]


def _measured(
    claim: Any,
    study: "Study",
    runs: Any,
    rows: Any,
    folder: "Path",
    tables: Any,
) -> "Verdict":
    """Compares a claim's sides. Returns a `Verdict`, not yet decided.

    If the sides cannot be compared, the `Verdict` is final and says why.
    """
    reason = (claim.not_testable or {}).get(study.form)
    if reason is not None:
        text = f"Not testable here: {reason.rstrip('.')}."
        return Verdict(claim, verdicts.NOT_TESTABLE, text)
    comparison = (
        _of_figure(claim, runs, tables.get(claim.of, []))
        if claim.of
        else _of_runs(claim, study, runs, rows, folder)
    )
    if isinstance(comparison, str):
        text = f"Not measured: {comparison}."
        return Verdict(claim, verdicts.NOT_MEASURED, text)
    p = verdicts.p_of(claim, comparison)
    return Verdict(claim, "", "", comparison, p)


def _narrow(claim: Any, runs: Any) -> Any:
    """Removes from a claim the setting values for which there is no run."""
    return dataclasses.replace(
        claim,
        higher=_narrow_side(claim.higher, runs),
        than=_narrow_side(claim.than, runs),
    )


def _narrow_side(side: Any, runs: Any) -> dict[str, Any]:
    narrowed = dict(side)
    for key, values in side.items():
        if isinstance(values, list):
            there = [run.settings.get(key) for run in runs]
            kept = [value for value in values if value in there] or values
            narrowed[key] = kept[0] if len(kept) == 1 else kept
    return narrowed


def _of_figure(claim: Any, runs: Any, paths: Any) -> Comparison | str:
    """Returns a `Comparison` of rows of a figure's tables.

    If the rows cannot be compared, returns the reason as a string.
    """
    if not paths:
        return f"the figure `{claim.of}` was not made"
    keys = {key for run in runs for key in run.point}
    differences = figure_pairs.figure_differences(claim, paths, keys)
    if isinstance(differences, str):
        return differences
    return statistics.compare_pairs(differences)


def _of_runs(
    claim: Any, study: "Study", runs: Any, rows: Any, folder: "Path"
) -> Comparison | str:
    """Returns a `Comparison` of the metrics of runs.

    If the runs cannot be compared, returns the reason as a string.
    """
    split = study.report.split
    rows = [row for row in rows if row[split] is not None]
    if claim.spreads:
        found = boxes.find_boxes(claim, runs, rows, split, study.select_over)
        return (
            spreads.compare_spreads(found)
            if found
            else f"no box has {spreads.FEWEST} finished runs on both sides"
        )
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
        claim_pairs.differences(matched, runs, split)
    )


def _decided(
    measured: Any,
    corrected_p: Any,
    number: Any,
    runs: Any,
    rows: Any,
) -> Any:
    """Completes a `Verdict` from `_measured`: decides, and explains why."""
    claim, comparison = measured.claim, measured.comparison
    sides = _rows_of_sides(claim, runs, rows)
    first, second = (dict.fromkeys(row["task"] for row in s) for s in sides)
    printed = claim.printed_for([task for task in first if task in second])
    word = verdicts.decide(claim, comparison, corrected_p, number, printed)
    around = sentences.Circumstances(
        printed=printed,
        one_seed=len({run.settings.get("seed") for run in runs}) == 1,
        rates=_untuned_rates(sides, runs),
    )
    return dataclasses.replace(
        measured,
        verdict=word,
        sentence=sentences.explain(
            claim, word, comparison, corrected_p, around
        ),
        corrected_p=corrected_p,
        printed=printed,
    )


def _rows_of_sides(claim: Any, runs: Any, rows: Any) -> list[Any]:
    """Returns the rows of the runs on each side of a claim.

    A claim about a figure may also name columns that are not settings. Such
    columns are ignored.
    """
    known = {key for run in runs for key in run.settings} | {"task"}
    where, *sides = (
        {key: value for key, value in wanted.items() if key in known}
        for wanted in (claim.where or {}, claim.higher, claim.than)
    )
    of_runs = dataclasses.replace(claim, where=where)
    return [claim_pairs.side_rows(of_runs, side, runs, rows) for side in sides]


def _untuned_rates(sides: Any, runs: Any) -> tuple[Any, ...] | None:
    """Returns each side's learning rates, or `None` if a side tries several.

    A rate that the study tries for other runs only was not tuned for these.
    """
    tried = collections.defaultdict(set)
    for run in runs:
        tried[_without_rate(run)].add(run.config.train.learning_rate)
    used = {row["run"] for rows in sides for row in rows}
    if any(len(tried[_without_rate(r)]) > 1 for r in runs if r.id in used):
        return None
    rates = {run.id: run.config.train.learning_rate for run in runs}
    found = [sorted({rates[row["run"]] for row in rows}) for rows in sides]
    return tuple(found) if all(found) else None


def _without_rate(run: Any) -> str:
    """Returns a run's place in the grid, but for its learning rate."""
    place = {key: value for key, value in run.point.items() if key != _RATE}
    return json.dumps(place, sort_keys=True, default=str)


def claim_rows(found: Any) -> list[Any]:
    """Returns the rows of `claims.csv`, a dict for each `Verdict`."""
    return [_row(verdict) for verdict in found]


def _row(verdict: Any) -> dict[str, Any]:
    claim, comparison = verdict.claim, verdict.comparison
    row = {
        "says": claim.says,
        "verdict": verdict.verdict,
        "sentence": verdict.sentence,
        "printed": verdict.printed,
        "margin": claim.margin,
    }
    if comparison is None:
        return row
    scale = verdicts.scale(claim)
    low, high = (_known(end * scale) for end in comparison.interval())
    alone = comparison.is_alone
    return row | {
        "difference": comparison.difference * scale,
        "low": low,
        "high": high,
        "p": None if alone else verdict.p,
        "corrected_p": None if alone else verdict.corrected_p,
        "pairs": comparison.pairs,
        "seeds": comparison.seeds,
        "examples": comparison.examples,
        "test": comparison.test,
        "brown_forsythe_p": comparison.second_p,
    }


def _known(number: Any) -> Any | None:
    return None if number != number else number


COLUMNS = ("says", "verdict", "sentence", "printed", "margin", "difference")
COLUMNS += ("low", "high", "p", "corrected_p", "pairs", "seeds", "examples")
COLUMNS += ("test", "brown_forsythe_p")
