"""The output of `--list=studies`: all studies and their estimated costs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
import textwrap
from typing import Any

from tf_adapters.papers.studies.grid import costs
from tf_adapters.papers.studies.grid import declaration
from tf_adapters.papers.studies.grid import plan as study_plan
from tf_adapters.papers.studies.grid.paper import PAPERS
from tf_adapters.report import content

_HEADER = ("--study", "what it makes", "form", "runs", "2-core hours")
_NOTE = (
    "Hours on two cores are from measured speeds (docs/results.md), with one "
    f"run at a time. Hours on an accelerator, an {costs.ACCELERATOR}, are "
    "estimated from the number of operations. Both assume that runs train for "
    "all their epochs. A run that several studies share trains once, but "
    "counts in each of them here. Flags of a command, such as --encoder, are "
    "not considered, nor are pictures that run the models again, such as "
    "`attack`. `>`: more runs have tasks or encoders of unknown size."
)


def list_studies(paths: Iterable[Path] | None = None) -> str:
    """Returns a table of studies and their reduced forms, as text.

    The table is followed by a list of the data that users must get themselves.

    Args:
        paths: List of YAML files. Defaults to the official studies.
    """
    if paths is None:
        paths = declaration.STUDIES.glob("*.yaml")
    rows, lacking = [], []
    for path in sorted(paths, key=lambda path: path.stem):
        study, forms = study_plan.load_forms(path)
        for form, runs in forms.items():
            first = (path.stem, _makes(study)) if form is None else ("", "")
            flag = f"--{form}" if form else "full"
            rows.append((*first, flag, *_numbers(costs.cost_of(runs))))
        if study.missing_data:
            lacking.append(f"{path.stem}:")
            lacking += [f"- {sentence}" for sentence in study.missing_data]
    header = (*_HEADER, "A100 hours (estimate)")
    text = content.as_text(content.ReportTable("", header, rows))
    parts = [text, textwrap.fill(_NOTE, 80)]
    if lacking:
        parts.append(
            "\n".join(["Data to get, which no command here fetches:", *lacking])
        )
    return "\n\n".join(parts)


def _makes(study: Any) -> str:
    """Returns the paper, and the tables and figures that a study reproduces.

    If the study has no paper, returns the keys of the study's own table.
    """
    if study.paper is None:
        return f"{', '.join(study.report.rows)} by {study.report.columns}"
    return f"{PAPERS[study.paper]}: {', '.join(study.covers)}"


def _numbers(cost: Any) -> tuple[str, ...]:
    seconds = (cost.two_core_seconds, cost.accelerator_seconds)
    return (str(cost.runs), *(_hours(s, cost.unknown) for s in seconds))


def _hours(seconds: Any, unknown: Any) -> str:
    hours = seconds / 3600
    if hours < 0.01:
        return "?" if unknown else "< 0.01"
    digits = 0 if hours >= 100 else 1 if hours >= 1 else 2
    return f"{'> ' if unknown else ''}{hours:,.{digits}f}"
