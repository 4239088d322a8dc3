"""How many times as fast as a model a smaller one is."""

import time

import numpy as np


def beside(whole, smaller, turns):
    """Returns the median over the turns, and its middle half's ends.

    Args:
        whole: Pair of a `Trainer` and the examples that it predicts.
        smaller: Another one.
        turns: How often each is timed, the two in turn.

    Returns:
        `(median, low, high)`, seconds of the whole by those of the smaller.
    """
    ratios = [_seconds(*whole) / _seconds(*smaller) for _ in range(turns + 1)]
    # The first one built the graphs.
    low, median, high = np.quantile(ratios[1:], (0.25, 0.5, 0.75)).tolist()
    return median, low, high


def _seconds(trainer, examples):
    started = time.perf_counter()
    trainer.predict(examples)
    return time.perf_counter() - started
