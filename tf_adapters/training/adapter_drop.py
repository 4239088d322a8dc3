"""AdapterDrop in training: steps without the adapters of the first blocks.

Rueckle et al. 2021 (arXiv:2010.11918, "robust AdapterDrop") train one model
from which the adapters of any number of first blocks can be left out later.
"""

import numpy as np


def num_left_out(
    between: tuple[int, ...], seed: int, draw: tuple[int, int]
) -> int:
    """Draws the number of first blocks that have no adapters in a step.

    Args:
        between: The smallest and the largest number to draw. If `()`, the
            number is 0.
        seed: Integer. Seed of the run.
        draw: The two integers that identify a batch; see `Batch`. A resumed run
            draws the same number for the same batch.

    Returns:
        Integer; all numbers between the two are equally likely.
    """
    if not between:
        return 0
    smallest, largest = between
    generator = np.random.default_rng([seed, *draw])
    return int(generator.integers(smallest, largest, endpoint=True))
