"""Computes metrics of many samples of examples at once, for bootstraps.

Each function here takes targets and predictions and returns another function.
That function takes `counts`, an array `(samples, examples)` that says how often
each sample has each example. It returns the metric of each sample,
`(samples,)`, equal to `tf_adapters.heads.metrics` for the repeated examples.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from seqeval.metrics.sequence_labeling import get_entities


def by_repetition(
    score: Callable[..., Any], compared: dict[str, Any]
) -> Callable[..., Any]:
    """Returns the function for any metric. It computes samples one by one.

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
    """Returns the function for a mean over examples."""
    return ratio(values, np.ones(len(values)))


def ratio(numerators: Any, denominators: Any) -> Callable[..., Any]:
    """Returns the function for a ratio of two sums over examples."""
    numerators, denominators = np.array([numerators, denominators], "float64")
    return lambda counts: _divide(counts @ numerators, counts @ denominators)


def accuracy(targets: Any, predicted: Any) -> Callable[..., Any]:
    """See `metrics.accuracy`. Micro F1 equals accuracy."""
    return mean(np.equal(targets, predicted))


def f1(targets: Any, predicted: Any) -> Callable[..., Any]:
    """See `metrics.f1`."""
    right = np.equal(targets, 1) & np.equal(predicted, 1)
    return ratio(2 * right, np.equal(targets, 1) + 0 + np.equal(predicted, 1))


def macro_f1(targets: Any, predicted: Any) -> Callable[..., Any]:
    """See `metrics.macro_f1`. The mean is over the classes in each sample."""
    targets, predicted = _one_hot(targets, predicted)

    def metric(counts: np.ndarray) -> Any:
        both = counts @ (targets + predicted)
        f1s = _divide(2 * counts @ (targets * predicted), both)
        return f1s.sum(axis=-1) / (both > 0).sum(axis=-1)

    return metric


def matthews(targets: Any, predicted: Any) -> Callable[..., Any]:
    """See `metrics.matthews`. Uses Gorodkin's form for many classes."""
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
    """See `metrics.pearson`."""
    x, y = (np.asarray(v, "float64") for v in (targets, predicted))
    x, y = x - x.mean(), y - y.mean()
    return lambda counts: _correlation(counts, x, y)


def spearman(targets: Any, predicted: Any) -> Callable[..., Any]:
    """See `metrics.spearman`. Ranks are computed within each sample."""

    def metric(counts: np.ndarray) -> Any:
        x, y = (_ranks(counts, values) for values in (targets, predicted))
        return _correlation(counts, x, y)

    return metric


def sampled_tag_accuracy(targets: Any, predicted: Any) -> Callable[..., Any]:
    """See `metrics.tag_accuracy`, and `entities` for the arguments."""
    right = [
        sum(np.sum(np.equal(*part)) for part in zip(*rows, strict=True))
        for rows in zip(targets, predicted, strict=True)
    ]
    return ratio(right, [sum(map(len, row)) for row in targets])


def entities(name: str, targets: Any, predicted: Any) -> Callable[..., Any]:
    """Returns the function for F1, precision or recall of entities.

    Args:
        name: `entity_f1`, `entity_precision` or `entity_recall`.
        targets: List with an entry for each sentence: a list of its parts,
            which are lists of class names.
        predicted: The same for predictions.
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
        there, found = set(get_entities(one)), set(get_entities(other))
        counts += len(there & found), len(found), len(there)
    return counts


def multilabel_f1(
    average: Any, targets: np.ndarray, predicted: Any
) -> Callable[..., Any]:
    """Returns the function for F1 with any number of classes per example.

    Args:
        average: `"micro"`, or `"macro"` for a mean over all classes.
        targets: Array `(examples, classes)` of 0 and 1.
        predicted: The same for predictions.
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
    """Returns a quotient, with 0 for 0 divided by 0."""
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
    """Returns each sample's correlation of `x` and `y`.

    They are `(examples,)`, or `(samples, examples)` if samples differ in them.
    """
    total = counts.sum(axis=-1, keepdims=True)
    x, y = (v - (counts * v).sum(-1, keepdims=True) / total for v in (x, y))
    spreads = [_spread(counts, values) for values in (x, y)]
    return _divide((counts * x * y).sum(-1), np.sqrt(spreads[0] * spreads[1]))


def _spread(counts: np.ndarray, values: Any) -> np.ndarray:
    """Returns sums of squares, 0 where they are only rounding errors."""
    squares = (counts * values**2).sum(-1)
    rounding = 1e-20 * np.max(values**2) * counts.sum(-1)
    return np.where(squares > rounding, squares, 0.0)


def _ranks(counts: np.ndarray, values: Any) -> np.ndarray:
    """Returns each example's mean rank within each sample."""
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
