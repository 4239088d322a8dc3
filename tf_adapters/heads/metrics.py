"""Metrics of the papers, each over the whole set and never over batches.

An average over batches of F1, Matthews or a correlation is another number than
the one over the set, so nothing here takes a batch.
"""

import functools

import numpy as np
from scipy import stats
from seqeval import metrics as seqeval_metrics
from sklearn import metrics as sklearn_metrics

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError


def _correlation(function, labels, predictions):
    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    return function(labels, predictions).statistic


_f1 = functools.partial(sklearn_metrics.f1_score, zero_division=0)
CLASSIFICATION_METRICS = {
    "accuracy": sklearn_metrics.accuracy_score,
    # Of class 1 of two classes (MRPC and QQP of GLUE).
    "f1": functools.partial(_f1, labels=[0, 1], pos_label=1),
    # Over the counts of all classes (CHEMPROT and RCT of TAE). With one label
    # an example it equals accuracy; He et al. 2021, table 1, reports it so.
    "micro_f1": functools.partial(_f1, average="micro"),
    # The mean of the classes that occur in either array.
    "macro_f1": functools.partial(_f1, average="macro"),
    # 0 where one side is constant (CoLA).
    "matthews": sklearn_metrics.matthews_corrcoef,
}
REGRESSION_METRICS = {
    "pearson": functools.partial(_correlation, stats.pearsonr),
    "spearman": functools.partial(_correlation, stats.spearmanr),
}
METRICS = {**CLASSIFICATION_METRICS, **REGRESSION_METRICS}


def both(compared):
    """Returns targets and predictions of what `Head.compare` returned."""
    return compared["target"], compared["predicted"]


def tag_accuracy(labels, predictions):
    """Returns the share of words, over all sentences, that are right."""
    pairs = [
        pair
        for sentences in zip(labels, predictions, strict=True)
        for pair in zip(*sentences, strict=True)
    ]
    return sum(label == tag for label, tag in pairs) / len(pairs)


# Of entities, which count where their words and their kind are right; seqeval's
# own mode, that of the script of CoNLL 2000.
TAGGING_METRICS = {
    "accuracy": tag_accuracy,
    "entity_f1": functools.partial(seqeval_metrics.f1_score, zero_division=0),
    "entity_precision": functools.partial(
        seqeval_metrics.precision_score, zero_division=0
    ),
    "entity_recall": functools.partial(
        seqeval_metrics.recall_score, zero_division=0
    ),
}


def compute_tagging(names, labels, predictions):
    """Computes metrics of tagging over a whole set.

    Args:
        names: Iterable of keys of `TAGGING_METRICS`.
        labels: List with a list of class names for each sentence.
        predictions: The same for what was predicted.

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


def compute_metrics(names, labels, predictions):
    """Computes metrics over a whole set.

    Args:
        names: Iterable of keys of `METRICS`.
        labels: Array of shape `(examples,)`: class ids, or floats for the
            correlations.
        predictions: Array of the same shape and kind.

    Returns:
        Dict from each name to a Python float. A constant prediction scores
        0.0 and not NaN where a metric is undefined for it.

    Raises:
        UserError: If a name is unknown, or the arrays are empty, differ in
            shape, are not one-dimensional or hold a value that is not finite.
    """
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    _check_names(names, METRICS)
    _check_arrays(labels, predictions)
    return {name: float(METRICS[name](labels, predictions)) for name in names}


def _check_names(names, known):
    for name in names:
        check_known("metric", name, sorted(known))


def _check_arrays(labels, predictions):
    if labels.ndim != 1 or labels.shape != predictions.shape or not labels.size:
        raise UserError(
            "Metrics need labels and predictions as two arrays of one equal "
            "dimension that is not empty. Received: labels of shape "
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
