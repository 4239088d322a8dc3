"""The report on a classification run, with one class for each text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
from sklearn import metrics as sklearn_metrics

from tf_adapters.common.errors import cut
from tf_adapters.report import mistakes
from tf_adapters.report import scores
from tf_adapters.report.content import Picture
from tf_adapters.report.content import ReportContent
from tf_adapters.report.content import ReportTable
from tf_adapters.report.pictures import draw_confusion

if TYPE_CHECKING:
    from tf_adapters.report.run_files import RunFiles


# Largest number of classes for which the confusion matrix is shown as a table,
# in plain text and on the HTML page.
_MOST_ON_SCREEN, _MOST_ON_PAGE = 8, 30
# With more classes, the picture shows only the classes with the most mistakes.
_MOST_IN_PICTURE = 30
_FITTED_HERE = (
    "The temperature was fitted on these rows: their calibration error is "
    "lower than that of new texts."
)


def classes_content(run: RunFiles) -> ReportContent:
    """Returns the `ReportContent` for a classification run.

    Args:
        run: `RunFiles` of a classification run. Its predictions are class ids.
    """
    right, predicted = (
        np.asarray(run.stored.compared[key], int)
        for key in ("target", "predicted")
    )
    names = run.label_names(max(right.max(), predicted.max()) + 1)
    most = int(np.bincount(right).argmax())
    table, note = scores.table_of_scores(
        run,
        [most] * len(right),
        f'always "{names[most]}"',
        ("accuracy", "macro_f1"),
    )
    tables, pictures = of_classes(right, predicted, names)
    sureness = _sureness(run, predicted)
    temperature = run.head.get("temperature", 1.0)
    calibration = scores.calibration_of(
        right == predicted, sureness, "predictions", temperature
    )
    errors = _mistakes(run, right, predicted, names, sureness)
    notes = [note] if note else []
    if run.split == "validation" and "temperature" in run.result:
        notes.append(_FITTED_HERE)
    return ReportContent(
        [table, *tables, *calibration[0]],
        [*pictures, *calibration[1]],
        errors,
        notes,
    )


def _sureness(run: RunFiles, predicted: Any) -> np.ndarray | None:
    """Returns the probability of the predicted class for each row.

    Returns `None` if no probabilities are stored.
    """
    probabilities = run.stored.compared.get("probabilities")
    if probabilities is None:
        return None
    return np.asarray(probabilities)[np.arange(len(predicted)), predicted]


def _mistakes(
    run: RunFiles,
    right: Any,
    predicted: Any,
    names: list[str],
    sureness: Any,
) -> ReportTable:
    wrong = np.flatnonzero(right != predicted)
    if sureness is not None:
        wrong = wrong[np.argsort(-sureness[wrong], kind="stable")]
    rows = [
        [
            int(i),
            names[right[i]],
            names[predicted[i]],
            None if sureness is None else float(sureness[i]),
        ]
        for i in wrong
    ]
    return mistakes.table_of_mistakes(
        run, rows, ("right", "predicted", "probability")
    )


def of_classes(
    right: Any, predicted: Any, names: list[str], unit: str = "rows"
) -> tuple[list[ReportTable], list[Picture]]:
    """Returns a confusion matrix and each class's precision, recall and F1.

    A class that has no examples and is never predicted is left out and named in
    a note.

    Args:
        right: True class ids, integer array `(examples,)`.
        predicted: Predicted class ids, integer array `(examples,)`.
        names: Class names in the order of their ids.
        unit: Plural noun for the examples. Default: `"rows"`.

    Returns:
        List of `ReportTable` and list of `Picture`. If there are more than 30
        classes, the matrix is only a picture.
    """
    there = np.union1d(right, predicted)
    absent = np.setdiff1d(range(len(names)), there)
    note = ""
    if absent.size:
        note = "Neither in the data nor predicted: "
        note += f"{cut(', '.join(names[i] for i in absent))}."
    names = [names[i] for i in there]
    matrix = sklearn_metrics.confusion_matrix(right, predicted, labels=there)
    tables = [_of_each(right, predicted, matrix, names, unit, note)]
    if len(names) <= _MOST_ON_PAGE:
        tables.insert(0, _matrix(matrix, names))
    return tables, [_picture(matrix, names, unit)]


def _matrix(matrix: np.ndarray, names: list[str]) -> ReportTable:
    rows = [
        [name, *map(int, counts)]
        for name, counts in zip(names, matrix, strict=True)
    ]
    return ReportTable(
        "Confusion matrix",
        (r"right \ predicted", *names),
        rows,
        on_screen=len(names) <= _MOST_ON_SCREEN,
    )


def _of_each(
    right: Any,
    predicted: Any,
    matrix: np.ndarray,
    names: list[str],
    unit: str,
    note: str,
) -> ReportTable:
    """Returns a table of each class's precision, recall and F1.

    Undefined values are `None`. The table has a row for each class that is in
    `right` or `predicted`, in the order of the class ids. These are the classes
    of `names` and `matrix`. See `of_classes` for the arguments.
    """
    values = sklearn_metrics.precision_recall_fscore_support(
        right, predicted, zero_division=np.nan
    )
    rows = [
        [name, int(count), *map(scores.defined, of_class), taken]
        for name, *of_class, count, taken in zip(
            names, *values, _taken_for(matrix, names), strict=True
        )
    ]
    header = ("class", unit, "precision", "recall", "F1", "most taken for")
    return ReportTable("Each class", header, rows, note)


def _taken_for(matrix: np.ndarray, names: list[str]) -> Iterator[str]:
    """Yields, for each true class, the most frequent wrong prediction.

    Yields strings such as "sports (12)" if the class "sports" was wrongly
    predicted 12 times, and "-" if there are no mistakes.
    """
    wrong = matrix - np.diag(np.diag(matrix))
    for counts in wrong:
        most = counts.argmax()
        yield f"{names[most]} ({counts[most]:,})" if counts[most] else "-"


def _picture(matrix: np.ndarray, names: list[str], unit: str) -> Picture:
    caption = f"Confusion matrix: {unit} of each class by what was predicted."
    shown = np.arange(len(names))
    if len(names) > _MOST_IN_PICTURE:
        mistakes_of = matrix.sum(0) + matrix.sum(1) - 2 * np.diag(matrix)
        shown = np.sort(np.argsort(-mistakes_of)[:_MOST_IN_PICTURE])
        caption += (
            f" Only the {_MOST_IN_PICTURE} classes with the most mistakes of "
            f"{len(names)}."
        )
    part, totals = matrix[np.ix_(shown, shown)], matrix.sum(axis=1)[shown]
    return Picture(
        "confusion",
        caption,
        lambda: draw_confusion(part, totals, [names[i] for i in shown]),
    )
