"""Computes a metric on many random samples of a run's stored predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import heads
from tf_adapters.heads import metrics
from tf_adapters.heads import span_metrics
from tf_adapters.heads.multilabel import MultiLabel
from tf_adapters.heads.span import Span
from tf_adapters.heads.tagging import Tagging
from tf_adapters.heads.tagging import labeled_parts
from tf_adapters.heads.vector_head import ValueHead
from tf_adapters.papers.studies.claims import resampling
from tf_adapters.runs import predictions

if TYPE_CHECKING:
    from tf_adapters.runs.predictions import Predictions


def sampled_metric(stored: Predictions, name: str) -> Any:
    """Returns a function that computes a metric on samples of predictions.

    Args:
        stored: `Predictions` of a run.
        name: Name of a metric of the run's head.

    Returns:
        Function that takes an integer array `(samples, rows)`, the number of
        times that each row of the predictions occurs in each sample. It returns
        an array `(samples,)` with the metric of each sample.

    Raises:
        DataError: If the predictions are damaged.
    """
    with predictions.errors_as_damage(stored.path):
        return sampled_metric_of_head(
            heads.HEADS[stored.head], name, stored.compared
        )


def sampled_metric_of_head(
    head: Any, name: str, compared: dict[str, Any]
) -> Any:
    """Returns a function that computes a metric on samples of predictions.

    See `sampled_metric` for the returned function.

    Args:
        head: Class of the head.
        name: Name of a metric.
        compared: Dict that `Head.compare` returned, with targets and
            predictions.
    """
    # A head with its own `score` may define another metric with this name.
    score: Any = getattr(head.score, "__func__", None)
    fast = _FAST.get(score)
    function = fast and fast(name, compared)
    return function or resampling.by_repetition(
        lambda some: head.score([name], some)[name], compared
    )


def _of_values(name: str, compared: dict[str, Any]) -> Any:
    function = _VALUES.get(name)
    return function and function(*metrics.both(compared))


def _of_label_sets(
    name: str, compared: dict[str, Any]
) -> Callable[..., Any] | str | None:
    average = {"micro_f1": "micro", "macro_f1": "macro"}.get(name)
    return average and resampling.multilabel_f1(
        average, *metrics.both(compared)
    )


def _of_tags(name: str, compared: dict[str, Any]) -> Callable[..., Any] | None:
    if name not in metrics.TAGGING_METRICS:
        return None
    gold, predicted = (
        [[part[side] for part in row] for row in labeled_parts(compared)]
        for side in (0, 1)
    )
    if name == "accuracy":
        return resampling.sampled_tag_accuracy(gold, predicted)
    return resampling.entities(name, gold, predicted)


def _of_answers(
    name: str, compared: dict[str, Any]
) -> Callable[..., Any] | None:
    if name not in span_metrics.SPAN_METRICS:
        return None
    return resampling.mean(span_metrics.of_each(name, *metrics.both(compared)))


_VALUES = {
    "accuracy": resampling.accuracy,
    "f1": resampling.f1,
    "micro_f1": resampling.accuracy,
    "macro_f1": resampling.macro_f1,
    "matthews": resampling.matthews,
    "pearson": resampling.pearson,
    "spearman": resampling.spearman,
}
# Dict from a head's `score` to a function that takes the name of a metric and
# predictions. It returns a function that scores all samples at once, or `None`.
_FAST = {
    ValueHead.score.__func__: _of_values,
    MultiLabel.score.__func__: _of_label_sets,
    Tagging.score.__func__: _of_tags,
    Span.score.__func__: _of_answers,
}
