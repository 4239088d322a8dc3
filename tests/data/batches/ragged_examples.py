"""Tokenized examples of random words, for tests of batches and training."""

import numpy as np

from tests import tiny
from tf_adapters.data.batches import pipeline
from tf_adapters.data.examples import Examples


def make_examples(count, seed=0, targets=None):
    """Returns `Examples`; by default the target is whether a text begins with
    a number below 25.

    Args:
        count: Integer.
        seed: Integer.
        targets: Function of the list of texts, each an array of token ids.
    """
    generator = np.random.default_rng(seed)
    rows = [
        generator.integers(1, tiny.VOCABULARY, generator.integers(3, 10))
        for _ in range(count)
    ]
    if targets is None:
        values = np.array([int(row[0] < 25) for row in rows], "int32")
    else:
        values = targets(rows)
    segments = [0 * row for row in rows]
    return pipeline.to_tensors(Examples(rows, segments, values, pad_id=0))
