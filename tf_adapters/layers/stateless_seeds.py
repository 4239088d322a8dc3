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

    Steps lie `DRAWS_PER_PASS` apart in the second number. A pass that draws
    more often (diff pruning of 36 blocks) goes on `SPILL` further in the first.

    Args:
        seed: Integer tensor of shape `(2,)`. Its second number is a multiple of
            `DRAWS_PER_PASS`. Its first one is the run's, a multiple of
            `PLACES`, and within that says where the pass takes place: replica,
            and part of the batch, four apart. A model begins up to three
            sequences in a place, at `seed`, `seed + 1` and `seed + 2`.
    """

    DRAWS_PER_PASS = 1 << 10
    PLACES = 1 << 16
    SPILL = 1 << 12
    # The draw of `of_step` and those of a sequence that began 2 further.
    _RESERVED = 3

    def __init__(self, seed):
        # The parent's constructor would create the state variable that this
        # class exists to avoid. Keras's PyTorch backend reads the attribute,
        # and takes `None` for a generator without a seed.
        self._initial_seed = 0
        self.seed = ops.convert_to_tensor(seed)
        self.draws = 0

    def next(self, ordered=True):
        """Returns the seed of the next draw, an integer tensor `(2,)`.

        Raises:
            OverflowError: After some 16,000 draws, beyond which they would
                repeat those of another place.
        """
        draws_here = self.DRAWS_PER_PASS - self._RESERVED
        spills, draw = divmod(self.draws, draws_here)
        if spills * self.SPILL >= self.PLACES:
            raise OverflowError(
                f"A forward pass has drawn {self.draws} times: no other draw "
                "is left that would not repeat one."
            )
        self.draws += 1
        step = np.array([spills * self.SPILL, draw + 1])
        seed = self.seed + ops.convert_to_tensor(step, dtype=self.seed.dtype)
        if keras.backend.backend() == "torch":
            # It adds the two numbers up, where neighbours would be equal.
            factors = np.array([40_503, 1])
            seed = seed * ops.convert_to_tensor(factors, dtype=seed.dtype)
        return seed

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
