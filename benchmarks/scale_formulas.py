"""What the library computes and stores, as formulas; see docs/scale.md.

`tests/scale_test.py` compares them with what `scale_points.py` measured.
"""

import math

import gpu_cases
import numpy as np
from scipy import stats

# Blocks and width.
SHAPES = {"MiniLM": (6, 384), "BERT-base": (12, 768)}
DAY = 86_400
# The busiest seconds of a day have this many times the mean; machines are
# planned to be busy for this share of the time.
PEAK, LOAD = 3, 0.6


def encoder_weights(blocks, width):
    """Returns the weights of a BERT with its pooler."""
    embeddings = (gpu_cases.VOCABULARY + 512 + 2 + 2) * width
    block = 12 * width**2 + 13 * width
    return embeddings + blocks * block + width**2 + width


def read_once_operations(blocks, width, tokens):
    """Returns the operations of a pass whose head reads the first token.

    The last block then computes keys and values of all tokens, and everything
    else of the first token only.
    """
    before = gpu_cases.text_operations(blocks - 1, width, tokens)
    last = 4 * tokens * width**2 + 20 * width**2 + 4 * tokens * width
    return before + last


def adapter_operations(blocks, width, units, tokens):
    """Returns the operations of one bottleneck a block for one text."""
    return ((blocks - 1) * tokens + 1) * 4 * width * units


def fusion_operations(blocks, width, units, members, tokens, texts):
    """Returns the operations of the fusion layers for a batch.

    Either the weights are multiplied by each other first, for more tokens than
    the members have units, or the tokens by three square matrices.
    """

    def block(rows):
        stacked = members * units
        each_row = 6 * width * stacked + 4 * width * members
        if rows > stacked:
            return 6 * (stacked + members) * width**2 + rows * each_row
        return rows * (6 * width**2 + each_row)

    return (blocks - 1) * block(texts * tokens) + block(texts)


def adapter_bytes(blocks, width, units, labels=2):
    """Returns the float32 bytes of Pfeiffer's adapters with a linear head."""
    bottleneck = 2 * width * units + width + units
    return 4 * (blocks * bottleneck + (width + 1) * labels)


def training_operations(blocks, width, tokens):
    """Returns the operations of a training step for one text.

    The encoder is frozen: the gradients of its outputs cost as much as the
    outputs, and those of its weights are not computed.
    """
    return 2 * read_once_operations(blocks, width, tokens)


def machines(requests_a_day, texts_a_second):
    """Returns the number of machines that answer so many requests."""
    peak = PEAK * requests_a_day / DAY
    return math.ceil(peak / (LOAD * texts_a_second))


def exponent(sizes, values):
    """Returns the exponent of a power law and the half width of its interval.

    Args:
        sizes: List of at least three sizes.
        values: List with the value for each size.

    Returns:
        Slope of the regression of logarithms, and half of its 95% interval.
    """
    fit = stats.linregress(np.log(sizes), np.log(values))
    return fit.slope, fit.stderr * stats.t.ppf(0.975, len(sizes) - 2)


def exponent_between(sizes, values):
    """Returns the exponent of a power law through two points.

    Args:
        sizes: Two sizes.
        values: The value for each size.
    """
    return math.log(values[1] / values[0]) / math.log(sizes[1] / sizes[0])
