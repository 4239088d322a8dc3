"""The report on a question-answering run, whose answers are spans of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tf_adapters.heads import span_metrics
from tf_adapters.report import mistakes
from tf_adapters.report import scores
from tf_adapters.report.content import ReportContent

if TYPE_CHECKING:
    from tf_adapters.report.run_files import RunFiles


def answers_content(run: RunFiles) -> ReportContent:
    """Returns the `ReportContent` for a question-answering run.

    Args:
        run: `RunFiles` of a question-answering run. Its predictions are the
            texts of answers.
    """
    compared = run.stored.compared
    right, predicted = compared["target"], compared["predicted"]
    table, _ = scores.table_of_scores(
        run, None, "", ("exact_match", "answer_f1")
    )
    exact, f1 = (
        span_metrics.of_each(name, right, predicted)
        for name in ("exact_match", "answer_f1")
    )
    sureness = compared.get("probabilities")
    calibration = scores.calibration_of(exact, sureness, "answers")
    rows = [
        [i, right[i][0], predicted[i], f1[i], sureness and sureness[i]]
        for i, is_exact in enumerate(exact)
        if not is_exact
    ]
    rows.sort(key=lambda row: (-(row[4] or 0), row[3]))
    errors = mistakes.table_of_mistakes(
        run, rows, ("right", "predicted", "F1", "probability")
    )
    return ReportContent([table, *calibration[0]], calibration[1], errors)
