"""Vectors of texts, losses and metrics, in NumPy. Imports nothing of ours.

One text, pair or anchor at a time, with a loop where the library has a matrix.
"""

import numpy as np


def vector(token_vectors, pooling):
    """token_vectors: (tokens, width), without padding. Of length 1."""
    x = np.asarray(token_vectors, "float64")
    x = x[0] if pooling == "first_token" else sum(x) / len(x)
    return x / np.sqrt(np.dot(x, x))


def cosine_loss(first, second, score):
    """first, second: vectors of length 1; score: from 0 to 1."""
    return (np.dot(first, second) - score) ** 2


def cosine_gradient(first, second, score):
    """The gradient of `cosine_loss` by `first`."""
    return 2 * (np.dot(first, second) - score) * np.asarray(second, "float64")


def negatives(row, texts):
    """Returns (row, place) of the candidates that are negatives of a row.

    texts: for each row the anchor, its positive and any negatives, as strings.
    """
    anchor = texts[row][0]
    known = {anchor} | {t[1] for t in texts if t[0] == anchor}
    found = {}
    for other, own in enumerate(texts):
        for place, text in enumerate(own[1:], start=1):
            if text not in known:
                found.setdefault(text, (other, place))
    return list(found.values())


def ranking_loss(row, vectors, texts, scale):
    """vectors: for each row those of its texts, of length 1."""
    anchor = vectors[row][0]
    own = scale * np.dot(anchor, vectors[row][1])
    others = [
        scale * np.dot(anchor, vectors[i][j]) for i, j in negatives(row, texts)
    ]
    return np.log(sum(np.exp(x) for x in [own, *others])) - own


def rank(row, vectors, texts):
    """Returns the rank of a row's positive; equal cosines come before it."""
    anchor = vectors[row][0]
    own = np.dot(anchor, vectors[row][1])
    return 1 + sum(
        np.dot(anchor, vectors[i][j]) >= own for i, j in negatives(row, texts)
    )


def ranking_metrics(ranks):
    """Returns a dict of MRR and recall."""
    count = len(ranks)
    recall = {
        f"recall_at_{k}": sum(rank <= k for rank in ranks) / count
        for k in (1, 5, 10)
    }
    return {"mrr": sum(1 / rank for rank in ranks) / count, **recall}
