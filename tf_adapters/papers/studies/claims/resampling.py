"""Computes metrics of many samples of examples at once, for bootstraps.

Each function here takes targets and predictions and returns another function.
That function takes `counts`, an array `(samples, examples)` that says how often
each sample contains each example. It returns an array `(samples,)` with the
metric of each sample. The metric has the same value as that of
`tf_adapters.heads.metrics` on the repeated examples.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from seqeval.metrics.sequence_labeling import get_entities

from tf_adapters.heads.metrics import entity_tags


def by_repetition(
    score: Callable[..., Any], compared: dict[str, Any]
) -> Callable[..., Any]:
    """Returns a function that computes any metric, one sample at a time.

    Args:
        score: Function that takes a dict like `compared` and returns the
            metric.
        compared: Dict of lists that have an entry for each example.
    """

    def metric(counts: np.ndarray) -> np.ndarray:
        indices = [np.repeat(np.arange(len(row)), row) for row in counts]
        return np.array(
            [
                score({k: [v[i] for i in rows] for k, v in compared.items()})
                for rows in indices
            ]
        )

    return metric


def mean(values: Any) -> Callable[..., Any]:
    """Returns a function that computes the mean of `values` in each sample."""
    return ratio(values, np.ones(len(values)))


def ratio(numerators: Any, denominators: Any) -> Callable[..., Any]:
    """Returns a function that computes a ratio of two sums in each sample.

    These are the sums of `numerators` and of `denominators`, which have a
    number for each example.
    """
    numerators, denominators = np.array([numerators, denominators], "float64")
    return lambda counts: _divide(counts @ numerators, counts @ denominators)


def accuracy(targets: Any, predicted: Any) -> Callable[..., Any]:
    """Returns a function that computes the accuracy of each sample.

    With one label per example, micro F1 is the same number, so this function
    serves both metrics.
    """
    return mean(np.equal(targets, predicted))


def f1(targets: Any, predicted: Any) -> Callable[..., Any]:
    """Returns a function that computes F1 of class 1 in each sample."""
    right = np.equal(targets, 1) & np.equal(predicted, 1)
    return ratio(2 * right, np.equal(targets, 1) + 0 + np.equal(predicted, 1))


def macro_f1(targets: Any, predicted: Any) -> Callable[..., Any]:
    """Returns a function that computes macro F1 in each sample.

    The mean is over the classes that occur in a sample.
    """
    targets, predicted = _one_hot(targets, predicted)

    def metric(counts: np.ndarray) -> Any:
        both = counts @ (targets + predicted)
        f1s = _divide(2 * counts @ (targets * predicted), both)
        return f1s.sum(axis=-1) / (both > 0).sum(axis=-1)

    return metric


def matthews(targets: Any, predicted: Any) -> Callable[..., Any]:
    """Returns a function that computes Matthews' correlation of each sample.

    With more than two classes, this is Gorodkin's coefficient.
    """
    targets, predicted = _one_hot(targets, predicted)
    right = (targets * predicted).sum(axis=-1)

    def metric(counts: np.ndarray) -> Any:
        count = counts.sum(axis=-1)
        of_targets, of_predicted = counts @ targets, counts @ predicted
        covariance = (counts @ right) * count
        covariance -= (of_targets * of_predicted).sum(axis=-1)
        spreads = [
            count**2 - (some**2).sum(axis=-1)
            for some in (of_targets, of_predicted)
        ]
        return _divide(covariance, np.sqrt(spreads[0] * spreads[1]))

    return metric


def pearson(targets: Any, predicted: Any) -> Callable[..., Any]:
    """Returns a function that computes Pearson's correlation of each sample."""
    x, y = (np.asarray(v, "float64") for v in (targets, predicted))
    x, y = x - x.mean(), y - y.mean()
    return lambda counts: _correlation(counts, x, y)


def spearman(targets: Any, predicted: Any) -> Callable[..., Any]:
    """Returns a function that computes Spearman's correlation of each sample.

    Ranks are computed within the sample.
    """

    def metric(counts: np.ndarray) -> Any:
        x, y = (_ranks(counts, values) for values in (targets, predicted))
        return _correlation(counts, x, y)

    return metric


def sampled_tag_accuracy(targets: Any, predicted: Any) -> Callable[..., Any]:
    """Returns a function that computes each sample's share of correct tags.

    See `entities` for the arguments.
    """
    right = [
        sum(np.sum(np.equal(*part)) for part in zip(*rows, strict=True))
        for rows in zip(targets, predicted, strict=True)
    ]
    return ratio(right, [sum(map(len, row)) for row in targets])


def entities(name: str, targets: Any, predicted: Any) -> Callable[..., Any]:
    """Returns a function that computes F1, precision or recall of entities.

    The function computes the metric of each sample of sentences.

    Args:
        name: `entity_f1`, `entity_precision` or `entity_recall`.
        targets: List with an entry for each sentence, which is a list of
            stretches of labeled words. A stretch is a list of class names, one
            for each word.
        predicted: The predicted class names in the same form.
    """
    right, found, there = np.transpose(
        [
            _count_entities(*rows)
            for rows in zip(targets, predicted, strict=True)
        ]
    )
    whole = {
        "entity_f1": (2 * right, found + there),
        "entity_precision": (right, found),
        "entity_recall": (right, there),
    }
    return ratio(*whole[name])


def _count_entities(targets: Any, predicted: Any) -> np.ndarray:
    """Counts a sentence's correct, predicted and gold entities."""
    counts = np.zeros(3, int)
    for one, other in zip(targets, predicted, strict=True):
        tags = entity_tags([one, other])
        there, found = (set(get_entities(row)) for row in tags)
        counts += len(there & found), len(found), len(there)
    return counts


def multilabel_f1(
    average: Any, targets: np.ndarray, predicted: Any
) -> Callable[..., Any]:
    """Returns a function that computes multilabel F1 in each sample.

    Args:
        average: `"micro"`, or `"macro"` for a mean over all classes.
        targets: Array `(examples, classes)`, 1 where an example has a class and
            0 elsewhere.
        predicted: The predicted classes in the same form.
    """
    targets, predicted = (
        np.asarray(v, "float64") for v in (targets, predicted)
    )
    right, both = targets * predicted, targets + predicted
    if average == "micro":
        return ratio(2 * right.sum(axis=-1), both.sum(axis=-1))
    return lambda counts: _divide(2 * counts @ right, counts @ both).mean(
        axis=-1
    )


def _divide(numerator: Any, denominator: Any) -> np.ndarray:
    """Divides two arrays. The quotient is 0 where the denominator is 0."""
    return np.divide(
        numerator,
        denominator,
        out=np.zeros(np.shape(numerator)),
        where=denominator > 0,
    )


def _one_hot(*arrays: Any) -> list[Any]:
    classes = np.unique(np.concatenate(arrays))
    return [
        (np.asarray(v)[:, None] == classes).astype("float64") for v in arrays
    ]


def _correlation(counts: np.ndarray, x: Any, y: Any) -> np.ndarray:
    """Returns the correlation of `x` and `y` in each sample.

    Both arrays have the shape `(examples,)`, or `(samples, examples)` if their
    values differ between samples.
    """
    total = counts.sum(axis=-1, keepdims=True)
    x, y = (v - (counts * v).sum(-1, keepdims=True) / total for v in (x, y))
    spreads = [_spread(counts, values) for values in (x, y)]
    return _divide((counts * x * y).sum(-1), np.sqrt(spreads[0] * spreads[1]))


def _spread(counts: np.ndarray, values: Any) -> np.ndarray:
    """Returns the sum of `values**2` over the examples of each sample.

    A sum that is small enough to be a rounding error becomes 0.
    """
    squares = (counts * values**2).sum(-1)
    rounding = 1e-20 * np.max(values**2) * counts.sum(-1)
    return np.where(squares > rounding, squares, 0.0)


def _ranks(counts: np.ndarray, values: Any) -> np.ndarray:
    """Returns each example's rank in each sample. Ties get their mean rank."""
    values = np.asarray(values)
    order = np.argsort(values, kind="stable")
    _, starts, places = np.unique(
        values[order], return_index=True, return_inverse=True
    )
    of_values = np.add.reduceat(counts[:, order], starts, axis=-1)
    last = np.cumsum(of_values, axis=-1)
    ranks = np.empty(counts.shape)
    ranks[:, order] = (last - (of_values - 1) / 2)[:, places]
    return ranks
