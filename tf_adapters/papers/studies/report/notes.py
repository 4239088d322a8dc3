"""Writes sentences for a study's report: units, and provenance of its runs."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING
from typing import Any

import pandas as pd

from tf_adapters.launch.progress_lines import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tf_adapters.launch.planned_run import Run
    from tf_adapters.papers.studies.grid.declaration import Study

PRINTED_AND_MEASURED = (
    "Printed: the paper's numbers in its units. Measured: as in the table of "
    "this study, and the number of runs."
)


_AGGREGATES = {
    "mean": "mean ± sample standard deviation over seeds",
    "standard_error": "mean ± its standard error over seeds",
    "best": "of the seed that is best on validation",
}


def units(study: Study, runs: Sequence[Run]) -> str:
    """Returns sentences that explain the numbers in a study's table.

    They name the metric's unit, what the cells aggregate, what was selected on
    validation, and the unit of the numbers of trained weights.

    Args:
        study: `Study`.
        runs: List of the study's `Run`.
    """
    report = study.report
    return (
        f"100 x the metric on {report.split}, "
        f"{_AGGREGATES[report.aggregate]}. "
        f"Selected on validation: {_selected(study, runs)}. "
        "Trained: weights without the head's, as a share of the encoder's."
    )


def _selected(study: Study, runs: Sequence[Run]) -> str:
    """Returns what a study selects on validation, such as "checkpoints"."""
    kept = {run.config.train.keep for run in runs}
    selected = ["hyperparameters"] if study.select_over else []
    if kept == {"best"}:
        selected.insert(0, "checkpoints")
    elif "best" in kept:
        selected.insert(0, "checkpoints of runs with `train.keep: best`")
    return " and ".join(selected) or "nothing"


def provenance_note(rows: list[dict[str, Any]]) -> list[str]:
    """Returns sentences on the provenance of the finished runs.

    Args:
        rows: List of dicts, from `run_rows.run_rows`.
    """
    rows = [row for row in rows if row["state"] == "finished"]
    sentences = [
        f"{counted(len(rows), 'run')}. Commits: {_counts(rows, 'commit')}.",
        f"Versions: {_counts(rows, 'versions')}.",
        f"Devices: {_counts(rows, 'device')}.",
    ]
    if any(row["changed"] for row in rows):
        sentences.append(
            "\\* From a source tree with changes, or from an unknown commit: "
            "do not report it."
        )
    by_data = pd.DataFrame(rows).groupby("data", sort=False)
    numbers = by_data.validation_fingerprint.nunique(dropna=False)
    return sentences + [
        f"**Not comparable: {data}: the runs saw {number} "
        "different sets of validation data.**"
        for data, number in numbers[numbers > 1].items()
    ]


def _counts(rows: Any, key: Any) -> Any:
    counts = collections.Counter(str(row[key] or "unknown") for row in rows)
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(
        f"{value} ({count} runs)" for value, count in counts.items()
    )
