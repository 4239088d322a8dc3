"""Losses of the heads from their formulas, in NumPy. Imports nothing of ours.

One example at a time, with a loop where the library has a mask.
"""

import numpy as np
import scipy.special


def log_softmax(logits):
    logits = np.asarray(logits, "float64")
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


def choice(first_vectors, kernel, bias, right):
    """first_vectors: (choices, width), of this question's choices alone."""
    scores = [vector @ kernel[:, 0] + bias[0] for vector in first_vectors]
    return np.array(scores), -log_softmax(scores)[right]


def tagging(vectors, kernel, bias, targets):
    """vectors: (tokens, width); a target below 0 is none. Sums over tokens."""
    return sum(
        -log_softmax(vector @ kernel + bias)[target]
        for vector, target in zip(vectors, targets, strict=True)
        if target >= 0
    )


def span(vectors, kernel, bias, first, last):
    """vectors: (tokens, width), without padding. Mean of both ends' losses."""
    logits = vectors @ kernel + bias
    of_first = -log_softmax(logits[:, 0])[first]
    return (of_first - log_softmax(logits[:, 1])[last]) / 2


def masked_lm(vector, weights, table, activation, epsilon):
    """vector: (width,), of one token. Returns logits over the vocabulary.

    weights: dict of the head's arrays; table: the encoder's token embedding.
    """
    x = activation(vector @ weights["kernel"] + weights["bias"])
    x = (x - x.mean()) / np.sqrt(np.mean((x - x.mean()) ** 2) + epsilon)
    x = x * weights["gamma"] + weights["beta"]
    return table @ x + weights["output_bias"]


def likeliest(logits, number):
    """Returns the ids of the largest logits, and their probabilities."""
    probabilities = scipy.special.softmax(np.asarray(logits, "float64"))
    ids = sorted(range(len(logits)), key=lambda i: -logits[i])[:number]
    return ids, [probabilities[i] for i in ids]
