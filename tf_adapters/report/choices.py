"""The report on a multiple-choice run."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.report import mistakes
from tf_adapters.report import scores
from tf_adapters.report.content import ReportContent

if TYPE_CHECKING:
    from tf_adapters.report.content import ReportTable
    from tf_adapters.report.run_files import RunFiles


def choices_content(run: RunFiles) -> ReportContent:
    """Returns the `ReportContent` for a multiple-choice run.

    Args:
        run: `RunFiles` of a multiple-choice run. Its predictions are indices of
            choices.
    """
    compared = run.stored.compared
    right, predicted = (
        np.asarray(compared[key], int) for key in ("target", "predicted")
    )
    most = int(np.bincount(right).argmax())
    table, note = scores.table_of_scores(
        run, [most] * len(right), f"always choice {most}"
    )
    sureness = None
    if "probabilities" in compared:
        sureness = [
            row[i]
            for row, i in zip(compared["probabilities"], predicted, strict=True)
        ]
    calibration = scores.calibration_of(
        right == predicted, sureness, "predictions"
    )
    return ReportContent(
        [table, *calibration[0]],
        calibration[1],
        _mistakes(run, right, predicted, sureness),
        [note] if note else [],
    )


def _mistakes(
    run: RunFiles, right: Any, predicted: Any, sureness: Any
) -> ReportTable:
    rows = [
        [
            int(i),
            _choice(run, i, right[i]),
            _choice(run, i, predicted[i]),
            None if sureness is None else float(sureness[i]),
        ]
        for i in np.flatnonzero(right != predicted)
    ]
    rows.sort(key=lambda row: -(row[-1] or 0))
    # The table shows the right and the predicted choice. So leave out the last
    # field, which lists all choices.
    run = dataclasses.replace(run, fields=run.fields[:-1])
    return mistakes.table_of_mistakes(
        run, rows, ("right", "predicted", "probability")
    )


def _choice(run: RunFiles, row: Any, place: Any) -> Any:
    if run.rows is None:
        return f"choice {place}"
    return run.rows[row][run.fields[-1]][place]
