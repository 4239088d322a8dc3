"""Metrics of retrieval, computed over a whole set.

For each anchor, all positives and negatives of the set are ranked by their
cosine with the anchor. The metrics depend on the rank of the anchor's positive.
"""

import collections
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError

RANKING_METRICS = {
    "mrr": lambda ranks: np.mean(1 / ranks),
    "recall_at_1": lambda ranks: np.mean(ranks <= 1),
    "recall_at_5": lambda ranks: np.mean(ranks <= 5),
    "recall_at_10": lambda ranks: np.mean(ranks <= 10),
}
# Number of rows whose cosines with all candidates are in memory at a time.
_ROWS_AT_ONCE = 512
# Cosines that differ by less than this are considered equal. Candidates with
# the same cosine as the positive are ranked before the positive. A model that
# gives all texts the same vector therefore ranks every positive last.
_TOLERANCE = 1e-6


def ranks(vectors: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Returns the rank of each row's positive, from 1 (the best).

    For each row, the positives and negatives of all rows are ranked by their
    cosine with the row's anchor. The anchor itself, and the positives of other
    rows with an equal anchor, are not ranked. A text that occurs several times
    is ranked once.

    Args:
        vectors: `(rows, texts, width)`. Vectors of length 1. The texts of a row
            are an anchor, its positive, and any number of negatives.
        numbers: `(rows, texts)`. Integers that identify the texts: equal texts
            have the same integer.

    Returns:
        Integer array `(rows,)`.

    Raises:
        UserError: If a vector has a number that is not finite.
    """
    if not np.isfinite(vectors).all():
        raise UserError(
            "Metrics of retrieval need finite vectors. Received: NaN or "
            "infinity. The model's weights or its half precision are probably "
            "the cause."
        )
    found, first = np.unique(numbers[:, 1:], return_index=True)
    width = vectors.shape[-1]
    candidates = vectors[:, 1:].reshape(-1, width)[first].T
    is_known = _known(numbers)
    parts = []
    for start in range(0, len(vectors), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        anchors, positives = vectors[part, 0], vectors[part, 1]
        cosines = anchors @ candidates
        for row, anchor in enumerate(numbers[part, 0]):
            cosines[row, np.isin(found, is_known[anchor])] = -np.inf
        own = np.sum(anchors * positives, axis=-1, keepdims=True)
        parts.append(1 + np.sum(cosines >= own - _TOLERANCE, axis=-1))
    return np.concatenate(parts)


def _known(numbers: np.ndarray) -> dict[int, list[int]]:
    """Returns, for each anchor, the texts that are not ranked for it.

    The result is a dict from the number of an anchor to a list of numbers: the
    anchor's own number and the numbers of its positives.
    """
    known = collections.defaultdict(list)
    for anchor, positive, *_ in numbers.tolist():
        known[anchor] += [anchor, positive]
    return known


def compute_ranking(names: Iterable[str], ranks: ArrayLike) -> dict[str, float]:
    """Computes metrics of retrieval over a whole set.

    Args:
        names: Iterable of keys of `RANKING_METRICS`.
        ranks: Array with the rank of each anchor's positive, from 1.

    Returns:
        Dict from each name to a Python float.

    Raises:
        UserError: If a name is unknown, or there are no ranks.
    """
    for name in names:
        check_known("metric", name, sorted(RANKING_METRICS))
    ranks = np.asarray(ranks)
    if ranks.ndim != 1 or not ranks.size or not (ranks >= 1).all():
        raise UserError(
            "Metrics of retrieval need ranks from 1 on, at least one. "
            f"Received: {ranks!r:.100}"
        )
    return {name: float(RANKING_METRICS[name](ranks)) for name in names}
