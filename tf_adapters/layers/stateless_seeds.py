"""Random numbers of a forward pass as a pure function of one seed."""

import keras
from keras import ops
import numpy as np


class StatelessSeeds(keras.random.SeedGenerator):
    """Gives each dropout of one forward pass a seed of its own, statelessly.

    A Keras `SeedGenerator` keeps its state in a variable, so that a mask
    depends on how often the model was called before, and the replicas of a
    strategy draw the same masks. Here the n-th draw of a forward pass is
    `seed + (0, n)`: a function of the seed alone. The caller decides what goes
    into the seed (run seed, step, replica).

    Args:
        seed: Integer tensor of shape `(2,)`. Its second number must leave room
            for the draws of one pass: steps lie `DRAWS_PER_PASS` apart. Its
            first one is the run's, a multiple of `PLACES`, and within that
            says where the pass takes place: replica, and part of the batch.
    """

    DRAWS_PER_PASS = 1 << 10
    PLACES = 1 << 16

    def __init__(self, seed):
        # The parent's constructor would create the state variable that this
        # class exists to avoid.
        self.seed = ops.convert_to_tensor(seed)
        self.draws = 0

    def next(self, ordered=True):
        self.draws += 1
        return self.seed + ops.convert_to_tensor(
            np.array([0, self.draws]), dtype=self.seed.dtype
        )

    def of_step(self):
        """Returns new `StatelessSeeds` for what all of one step draws alike.

        Each layer, on each replica, in each part of the batch.
        """
        dtype = self.seed.dtype
        last = ops.array([0, self.DRAWS_PER_PASS - 2], dtype=dtype)
        place = ops.mod(self.seed, ops.array([self.PLACES, 1], dtype=dtype))
        return StatelessSeeds(self.seed - place + last)


def dropout(x, rate, seeds):
    """Returns `x` with inverted dropout, or `x` itself where `seeds` is `None`.

    Args:
        x: Float tensor.
        rate: Float in `[0, 1)`. Probability that an element becomes zero.
        seeds: `StatelessSeeds`, or `None` outside of training.
    """
    if seeds is None or rate == 0:
        return x
    return keras.random.dropout(x, rate, seed=seeds)
