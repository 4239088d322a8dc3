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
    into the seed (run seed, step, replica); see `pass_seed`.

    A pass that draws more often than `DRAWS_PER_PASS` allows (diff pruning of
    36 blocks) goes on from a seed that is itself drawn.

    Args:
        seed: Integer tensor of shape `(2,)`, as `pass_seed` returns it. A model
            begins up to three sequences of draws with it, at `seed`, `seed + 1`
            and `seed + 2`.
    """

    DRAWS_PER_PASS = 1 << 10
    PLACES = 1 << 16
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
        """Returns the seed of the next draw, an integer tensor `(2,)`."""
        has_room = self.draws < self.DRAWS_PER_PASS - self._RESERVED
        start = self.seed if has_room else self._drawn_seed()
        self.draws += 1
        seed = start + self._pair(0, self.draws)
        if keras.backend.backend() == "torch":
            # It adds the two numbers up, where neighbours would be equal.
            seed = seed * self._pair(40_503, 1)
        return seed

    def _drawn_seed(self):
        # The draw before the first one, which nothing else uses.
        before = StatelessSeeds(self.seed - self._pair(0, 1))
        drawn = keras.random.randint((2,), 0, 2**31 - 1, seed=before)
        return ops.cast(drawn, self.seed.dtype)

    def _pair(self, first, second):
        return ops.convert_to_tensor(
            np.array([first, second]), dtype=self.seed.dtype
        )

    def of_step(self):
        """Returns new `StatelessSeeds` for what all of one step draws alike.

        Each layer, on each replica, in each part of the batch.
        """
        last = self._pair(0, self.DRAWS_PER_PASS - 2)
        place = ops.mod(self.seed, self._pair(self.PLACES, 1))
        return StatelessSeeds(self.seed - place + last)


# How many places the replicas and the parts of a batch may be in all: a place
# takes four numbers, three for the sequences of a pass.
MAX_PLACES = StatelessSeeds.PLACES // 4
MAX_SEED = 2**32 - 1
# Odd, so that its first 2**32 multiples differ modulo 2**32, and such that the
# first ones lie far apart there: 2**32 over the square of the golden ratio.
_FAR = 1_640_531_527


def pass_seed(run, place, step):
    """Returns the seed of a forward pass, an integer tensor `(2,)`.

    The first number has 16 bits of the run's seed and 16 of the place, the
    second one 22 bits of the step and ten for the draws. So seeds below 65,536
    have no draw in common. Of larger ones, the other 16 bits decide which
    number their steps are counted from.

    Args:
        run: Integer from 0 to `MAX_SEED`, or a tensor of it.
        place: Integer tensor below `MAX_PLACES`: replica and part of the batch.
        step: Integer tensor of the type of `place`, int64 with TensorFlow.
            Draws recur after 4,194,304 steps.
    """
    first = run % 2**16 * StatelessSeeds.PLACES + 4 * place
    second = run // 2**16 * _FAR + step * StatelessSeeds.DRAWS_PER_PASS
    seed = ops.stack([first, second])
    if keras.backend.backend() == "tensorflow":
        # Modulo 2**32. Keras would do so modulo 2**31 - 2, and let some meet.
        seed = ops.cast(seed, "int32")
    return seed


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
