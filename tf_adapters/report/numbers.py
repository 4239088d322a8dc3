"""The report on a regression run, with one number for each text."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import numpy as np
from sklearn import metrics as sklearn_metrics

from tf_adapters.report import mistakes
from tf_adapters.report import scores
from tf_adapters.report.content import Picture
from tf_adapters.report.content import ReportContent
from tf_adapters.report.content import ReportTable
from tf_adapters.report.pictures import draw_scatter

if TYPE_CHECKING:
    from tf_adapters.report.run_files import RunFiles


def numbers_content(run: RunFiles) -> ReportContent:
    """Returns the `ReportContent` for a regression run.

    Args:
        run: `RunFiles` of a regression run. Its predictions are numbers.
    """
    right, predicted = (
        np.asarray(run.stored.compared[key], "float64")
        for key in ("target", "predicted")
    )
    mean = np.full(len(right), right.mean())
    name = f"always {right.mean():.4g}"
    table, _ = scores.table_of_scores(run, mean, name, ("pearson", "spearman"))
    errors = [_errors(right, some) for some in (predicted, mean)]
    rows = [[*row, *some] for row, some in zip(table.rows, errors, strict=True)]
    header = (*table.header, "root mean squared error", "mean absolute error")
    is_worse = errors[0][0] >= errors[1][0]
    notes = [f"Its squared error is not below that of {name}."] * is_worse
    picture = Picture(
        "scatter",
        "Predicted numbers by the right ones; on the line they are equal.",
        lambda: draw_scatter(right, predicted),
    )
    order = np.argsort(-np.abs(predicted - right), kind="stable")
    differences = [
        [int(i), float(right[i]), float(predicted[i]), predicted[i] - right[i]]
        for i in order
    ]
    return ReportContent(
        [ReportTable(table.title, header, rows)],
        [picture],
        mistakes.table_of_mistakes(
            run, differences, ("right", "predicted", "difference")
        ),
        notes,
    )


def _errors(right: Any, predicted: Any) -> list[float]:
    return [
        float(sklearn_metrics.root_mean_squared_error(right, predicted)),
        float(sklearn_metrics.mean_absolute_error(right, predicted)),
    ]
