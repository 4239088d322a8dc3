"""Metrics of classification, regression and tagging, as in the papers.

They are computed over whole sets. The F1 or the correlation of a set is not the
mean over its batches. Therefore, do not call these functions for each batch.
"""

from collections.abc import Callable
from collections.abc import Iterable
import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from seqeval import metrics as seqeval_metrics
from sklearn import metrics as sklearn_metrics

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError


def _correlation(
    function: Callable[..., Any], labels: np.ndarray, predictions: np.ndarray
) -> float:
    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    return function(labels, predictions).statistic


_f1 = functools.partial(sklearn_metrics.f1_score, zero_division=0)
CLASSIFICATION_METRICS = {
    "accuracy": sklearn_metrics.accuracy_score,
    # F1 of class 1 of two classes (MRPC and QQP of GLUE).
    "f1": functools.partial(_f1, labels=[0, 1], pos_label=1),
    # F1 from the counts of all classes (CHEMPROT and RCT of TAE). It equals
    # accuracy if each example has one label; He et al. 2021, table 1, reports
    # it under this name.
    "micro_f1": functools.partial(_f1, average="micro"),
    # The mean F1 of the classes that occur in either array.
    "macro_f1": functools.partial(_f1, average="macro"),
    # 0 if labels or predictions are constant (CoLA).
    "matthews": sklearn_metrics.matthews_corrcoef,
}
REGRESSION_METRICS = {
    "pearson": functools.partial(_correlation, stats.pearsonr),
    "spearman": functools.partial(_correlation, stats.spearmanr),
}
METRICS = {**CLASSIFICATION_METRICS, **REGRESSION_METRICS}
# The middle and the last word of an entity, and an entity of one word.
_SEQEVAL_PREFIXES = {"M": "I", "L": "E", "U": "S"}


def both(compared: dict[str, Any]) -> tuple[Any, Any]:
    """Returns `target` and `predicted` from the dict of `Head.compare`."""
    return compared["target"], compared["predicted"]


def tag_accuracy(
    labels: list[list[str]], predictions: list[list[str]]
) -> float:
    """Returns the share of words with the right tag, over all sentences."""
    pairs = [
        pair
        for sentences in zip(labels, predictions, strict=True)
        for pair in zip(*sentences, strict=True)
    ]
    return sum(label == tag for label, tag in pairs) / len(pairs)


def entity_tags(sentences: Iterable[list[str]]) -> list[list[str]]:
    """Returns tags in the form that seqeval reads, such as "B-PER" and "O".

    seqeval takes the first letter of every tag for its prefix: "ORG" would be
    outside of entities, and "BUS" would begin one. A tag without a prefix
    becomes "I-ORG": adjacent words with this tag form an entity. seqeval's
    default mode knows the prefixes B, I, E, S and O only. The others are
    translated: M to I, L to E and U to S, as in BMES and BILOU.

    Args:
        sentences: Lists with the tag of each word.
    """
    return [[_entity_tag(tag) for tag in row] for row in sentences]


def _entity_tag(tag: str) -> str:
    # Prefixes are those of any scheme: B, I, E, S, M, L, U.
    is_marked = len(tag) < 2 or tag[1] in "-_"
    if not is_marked:
        return f"I-{tag}"
    return _SEQEVAL_PREFIXES.get(tag[:1], tag[:1]) + tag[1:]


def _of_entities(function: Callable[..., Any]) -> Callable[..., float]:
    """Returns a function from labels and predictions to a metric of entities.

    An entity is right if its words and its kind are right. This is seqeval's
    default mode, which matches the script of CoNLL 2000.
    """

    def compute(labels: list[list[str]], predictions: list[list[str]]) -> float:
        marked = entity_tags(labels), entity_tags(predictions)
        return function(*marked, zero_division=0)

    return compute


TAGGING_METRICS = {
    "accuracy": tag_accuracy,
    "entity_f1": _of_entities(seqeval_metrics.f1_score),
    "entity_precision": _of_entities(seqeval_metrics.precision_score),
    "entity_recall": _of_entities(seqeval_metrics.recall_score),
}


def compute_tagging(
    names: Iterable[str], labels: list[list[str]], predictions: list[list[str]]
) -> dict[str, float]:
    """Computes metrics of tagging over a whole set.

    Args:
        names: Iterable of keys of `TAGGING_METRICS`.
        labels: List with a list of right class names for each sentence.
        predictions: List with a list of predicted class names for each
            sentence.

    Returns:
        Dict from each name to a Python float.

    Raises:
        UserError: If a name is unknown, no word has a label, or the lists
            differ in length.
    """
    _check_names(names, TAGGING_METRICS)
    lengths = [[len(row) for row in part] for part in (labels, predictions)]
    if lengths[0] != lengths[1] or not sum(lengths[0]):
        raise UserError(
            "Metrics of tagging need a label and a prediction for each word, "
            f"and a word. Received: {sum(lengths[0])} labels and "
            f"{sum(lengths[1])} predictions."
        )
    return {
        name: float(TAGGING_METRICS[name](labels, predictions))
        for name in names
    }


def compute_metrics(
    names: Iterable[str], labels: ArrayLike, predictions: ArrayLike
) -> dict[str, float]:
    """Computes metrics of classification or regression over a whole set.

    Args:
        names: Iterable of keys of `METRICS`.
        labels: Array of shape `(examples,)`: class ids, or floats for the
            correlations.
        predictions: Array of the same shape and kind.

    Returns:
        Dict from each name to a Python float. If a metric is undefined because
        the predictions are constant, it is 0.0 instead of NaN.

    Raises:
        UserError: If a name is unknown, or if the arrays are empty, differ in
            shape, are not one-dimensional, or contain a value that is not a
            finite number.
    """
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    _check_names(names, METRICS)
    _check_arrays(labels, predictions)
    return {name: float(METRICS[name](labels, predictions)) for name in names}


def _check_names(names: Iterable[str], known: Iterable[str]) -> None:
    for name in names:
        check_known("metric", name, sorted(known))


def _check_arrays(labels: np.ndarray, predictions: np.ndarray) -> None:
    if labels.ndim != 1 or labels.shape != predictions.shape or not labels.size:
        raise UserError(
            "Metrics need labels and predictions as two non-empty arrays with "
            "one dimension, of equal length. Received: labels of shape "
            f"{labels.shape}, predictions of shape {predictions.shape}"
        )
    for name, array in (("labels", labels), ("predictions", predictions)):
        if not np.issubdtype(array.dtype, np.number):
            raise UserError(
                f"Metrics need numbers. Received: {name} of type {array.dtype}"
            )
        bad = np.flatnonzero(~np.isfinite(array))
        if bad.size:
            raise UserError(
                f"Metrics need finite {name}. Received: {array[bad[0]]} for "
                f"example {bad[0]}, and {bad.size - 1} more that are not finite"
            )
