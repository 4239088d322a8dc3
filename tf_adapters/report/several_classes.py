"""The report on a multi-label run, with any number of classes for each text."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import numpy as np
from sklearn import metrics as sklearn_metrics

from tf_adapters.report import mistakes
from tf_adapters.report import scores
from tf_adapters.report.content import ReportContent
from tf_adapters.report.content import ReportTable

if TYPE_CHECKING:
    from tf_adapters.report.run_files import RunFiles


def several_classes_content(run: RunFiles) -> ReportContent:
    """Returns the `ReportContent` for a multi-label run.

    Args:
        run: `RunFiles` of a multi-label run. Each prediction is a list with 0
            or 1 for each class.
    """
    compared = run.stored.compared
    right, predicted = (
        np.asarray(compared[key], int) for key in ("target", "predicted")
    )
    names = run.label_names(right.shape[1])
    most = right.sum(0).argmax()
    simplest = np.zeros_like(right)
    simplest[:, most] = 1
    table, note = scores.table_of_scores(
        run, simplest, f'always "{names[most]}"', ("micro_f1", "macro_f1")
    )
    probabilities = compared.get("probabilities")
    calibration = scores.calibration_of(
        right.ravel(),
        None if probabilities is None else np.ravel(probabilities),
        "classes of texts",
    )
    return ReportContent(
        [table, _of_each(right, predicted, names), *calibration[0]],
        calibration[1],
        _mistakes(run, right, predicted, names, probabilities),
        [note] if note else [],
    )


def _of_each(right: Any, predicted: Any, names: list[str]) -> ReportTable:
    values = sklearn_metrics.precision_recall_fscore_support(
        right, predicted, zero_division=np.nan
    )
    rows = [
        [name, int(count), *map(scores.defined, of_class)]
        for name, *of_class, count in zip(names, *values, strict=True)
    ]
    return ReportTable(
        "Each class", ("class", "rows", "precision", "recall", "F1"), rows
    )


def _mistakes(
    run: RunFiles,
    right: Any,
    predicted: Any,
    names: list[str],
    probabilities: Any,
) -> ReportTable:
    """Returns a table of the rows for which any class is predicted wrongly.

    For each row, the table has the highest probability that the model gave to a
    wrong decision about a class. Rows with the highest probability come first.
    """
    rows = []
    for i in np.flatnonzero((right != predicted).any(axis=1)):
        surest = None
        if probabilities is not None:
            given = np.asarray(probabilities[i])
            of_decision = np.where(predicted[i] == 1, given, 1 - given)
            surest = float(of_decision[right[i] != predicted[i]].max())
        rows.append(
            [int(i), _set(right[i], names), _set(predicted[i], names), surest]
        )
    rows.sort(key=lambda row: -(row[-1] or 0))
    return mistakes.table_of_mistakes(
        run, rows, ("right", "predicted", "probability")
    )


def _set(there: Any, names: list[str]) -> str:
    return ", ".join(names[i] for i in np.flatnonzero(there)) or "none"
