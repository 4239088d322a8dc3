"""Compares a run's scores with a trivial prediction's scores."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters import heads
from tf_adapters.report.calibration import reliability
from tf_adapters.report.content import Picture
from tf_adapters.report.content import ReportTable
from tf_adapters.report.pictures import draw_calibration
from tf_adapters.tasks.output_kinds import KINDS

if TYPE_CHECKING:
    from tf_adapters.report.run_files import RunFiles


THIS_RUN = "this run"


def table_of_scores(
    run: RunFiles, simplest: Any, name: str, more: Any = ()
) -> tuple[ReportTable, str]:
    """Makes a table that compares a run's metrics with a trivial prediction's.

    Args:
        run: `RunFiles`.
        simplest: Trivial prediction: a list with an entry for each row, such as
            the most frequent class. `None` leaves it out.
        name: Name of the trivial prediction, to show in the table.
        more: Names of metrics to add to those in the run's result, if the head
            has them. Default: none.

    Returns:
        `ReportTable`, and a string: a note that names the metrics in which the
        run is not better than the trivial prediction, or "".
    """
    names = [n for n in run.metrics if n not in ("loss", "split")]
    known = KINDS[run.stored.head].metrics
    names = list(dict.fromkeys([*names, *(n for n in more if n in known)]))
    names = names or list(KINDS[run.stored.head].default_metrics)
    own = run.stored.metrics(names)
    rows = [[THIS_RUN, *own.values()]]
    note = ""
    if simplest is not None:
        compared = {**run.stored.compared, "predicted": simplest}
        other = heads.HEADS[run.stored.head].score(names, compared)
        rows.append([name, *other.values()])
        # Only of the library's own heads are all metrics better if higher.
        judged = names if run.has_own_head else names[:1]
        note = _verdict({n: own[n] for n in judged}, other, name)
    return ReportTable("Scores", ("", *map(_in_words, names)), rows), note


def defined(value: Any) -> float | None:
    """Returns a score as a number, or `None` for NaN, which is undefined."""
    return None if np.isnan(value) else float(value)


def _verdict(own: Any, other: Any, name: str) -> str:
    """Returns a note on metrics that are no better than a trivial prediction's.

    Returns "" if the run is better in all metrics.

    Args:
        own: Dict of the run's metrics that are better if they are higher.
        other: Dict of the trivial prediction's metrics.
        name: Name of the trivial prediction.
    """
    lower = [n for n in own if own[n] <= other[n]]
    if not lower:
        return ""
    said = ", ".join(
        f"{_in_words(n)} {own[n]:.4f} against {other[n]:.4f}" for n in lower
    )
    return f"No better than {name}: {said}."


def _in_words(metric: str) -> str:
    return metric.replace("_f1", " F1").replace("_", " ")


def calibration_of(
    right: Any, probabilities: Any, what: str, temperature: float = 1.0
) -> tuple[Any, ...]:
    """Returns a table of the calibration error, and a reliability diagram.

    Returns two lists: one with the `ReportTable`, one with the `Picture`.

    Args:
        right: Array of booleans that say whether each prediction is right.
        probabilities: Probability of each prediction, or `None` if none were
            stored. Then both lists are empty.
        what: Plural noun for the predictions, such as "answers".
        temperature: Temperature of the head, to show in a note. Default: 1.
    """
    if probabilities is None:
        return [], []
    found = reliability(right, probabilities)
    table = ReportTable(
        "Calibration",
        (
            "expected calibration error",
            "mean probability",
            "share right",
            "bins",
        ),
        [[found.error, *found.means, len(found.counts)]],
        f"Probabilities of {what} in {found.bins} bins of equal width; empty "
        f"bins are not counted. Temperature: {temperature:.4g}.",
    )
    picture = Picture(
        "calibration",
        f"Calibration: the share of {what} that are right, by the probability "
        "that the model gave them. On the diagonal the two are equal.",
        lambda: draw_calibration(found),
    )
    return [table], [picture]
