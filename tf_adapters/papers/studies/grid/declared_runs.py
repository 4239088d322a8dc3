"""Finds the runs that the paper's numbers, pictures and claims are about."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown
from tf_adapters.config import task as config_task
from tf_adapters.papers.studies.grid import paper
from tf_adapters.papers.studies.grid import report_keys
from tf_adapters.papers.studies.grid import settings as study_settings
from tf_adapters.tasks import languages

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.launch.planned_run import Run
    from tf_adapters.papers.studies.grid.declaration import Study
    from tf_adapters.papers.studies.grid.paper import Expected


def find_runs(wanted: dict[str, Any] | None, runs: Sequence[Run]) -> list[Run]:
    """Returns the runs with the wanted settings, or all runs for `None`.

    Args:
        wanted: Dict from a setting to its value or to a list of possible
            values, or `None`. A run with several tasks matches if one of its
            tasks matches.
        runs: List of `Run`.
    """
    return [
        run
        for run in runs
        if any(
            study_settings.matches(wanted or {}, {**run.settings, "task": task})
            for task in run.metrics
        )
    ]


def check_declared_runs(study: Study, runs: Sequence[Any]) -> None:
    """Raises `ConfigError` if a printed number, figure or claim has no run.

    Args:
        study: `Study`.
        runs: List of all runs of the complete study.
    """
    if study.expected:
        known = [*_columns(study, runs), paper.AVERAGE]
        for column in study.expected.columns:
            if str(column) not in known:
                raise ConfigError(
                    f"No run has `{study.report.columns}` {column}, which "
                    "`expected.columns` names. Those there are: "
                    f"{', '.join(known)}."
                )
        for row in study.expected.rows:
            _refuse_none(
                _without_best(study, row.runs), runs, "A row of `expected.rows`"
            )
    for figure in study.figures:
        _refuse_none(figure.runs, runs, f"The figure `{figure.name}`")
    for claim in study.claims:
        for side in _sides(claim):
            _refuse_none(side, runs, f"The claim {shown(claim.says)}")


def without_other_runs(study: Study, runs: Sequence[Run]) -> Study:
    """Removes the figures, claims and printed numbers that have no runs.

    Args:
        study: `Study`.
        runs: List of `Run`, the runs that remain in a reduced form or under
            flags.
    """
    figures = [f for f in study.figures if find_runs(f.runs, runs)]
    names = [figure.name for figure in figures]
    claims = [
        claim
        for claim in study.claims
        if all(find_runs(side, runs) for side in _sides(claim))
        and claim.of in (None, *names)
    ]
    return dataclasses.replace(
        study,
        expected=study.expected and _cut_expected(study, runs),
        figures=figures,
        claims=claims,
    )


def _cut_expected(study: Study, runs: Any) -> Expected | None:
    """Returns the part of `study.expected` that has runs, or `None`."""
    expected: Any = study.expected
    known = _columns(study, runs)
    kept = [i for i, c in enumerate(expected.columns) if str(c) in known]
    lacking = [c for c in expected.columns if str(c) not in known]
    if lacking == [paper.AVERAGE]:
        # The mean must be over the same columns as in the paper.
        kept = list(range(len(expected.columns)))
    rows = [
        row
        for row in expected.rows
        if find_runs(_without_best(study, row.runs), runs)
    ]
    if not kept or not rows:
        return None
    rows = [
        paper.ExpectedRow(
            row.runs,
            [row.values[i] for i in kept],
            row.errors and [row.errors[i] for i in kept],
        )
        for row in rows
    ]
    return paper.Expected([expected.columns[i] for i in kept], rows)


def _without_best(study: Study, wanted: Any) -> dict[Any, Any]:
    """Drops the setting that `report.best_of` names if its value is "best"."""
    key = study.report.best_of
    return {
        k: v for k, v in wanted.items() if (k, v) != (key, report_keys.BEST)
    }


def _sides(claim: Any) -> list[Any]:
    """Returns the settings that select the runs on each side of a claim.

    For a claim about a figure, which selects no runs, the list is empty.
    """
    if claim.of is not None:
        return []
    return [
        {**(claim.where or {}), **side} for side in (claim.higher, claim.than)
    ]


def _columns(study: Study, runs: Any) -> list[Any]:
    """Returns the names of the columns in the study's table for these runs."""
    key = study.report.columns
    if key == report_keys.LANGUAGES:
        return list(languages.AVERAGES) + [
            language for run in runs for language in _languages(run.config)
        ]
    values = (
        {**run.settings, "task": task}.get(key)
        for run in runs
        for task in run.metrics
    )
    names = list(dict.fromkeys(map(str, values)))
    if key == "task" and "mnli" in names:
        names.append(report_keys.MISMATCHED)
    return names


def _languages(config: Config) -> Any:
    """Returns the languages in which a run can be evaluated."""
    names = config.data.eval_languages
    known = config_task.declared_task(config).languages
    return known.names if names == ("all",) and known else names


def _refuse_none(wanted: Any, runs: Any, what: str) -> None:
    if not find_runs(wanted, runs):
        raise ConfigError(
            f"{what} is about runs with {wanted}, but the study has none. "
            "Correct it or leave it out."
        )
