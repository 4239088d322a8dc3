"""Random seeds of a forward pass, as a pure function of one seed."""

import keras
from keras import ops
import numpy as np

from tf_adapters.common.types import Tensor


class StatelessSeeds(keras.random.SeedGenerator):
    """Generates a seed for each dropout of a forward pass, without a state.

    A Keras `SeedGenerator` keeps its state in a variable. A dropout mask then
    depends on how often the model was called before, and all replicas of a
    strategy draw the same masks. Here, the n-th seed of a forward pass is
    `seed + (0, n)`, which depends only on `seed`. The caller derives `seed`
    from the run's seed, the step and the replica; see `pass_seed`.

    If a pass needs more than about `DRAWS_PER_PASS` seeds, as diff pruning of
    36 blocks does, the remaining ones continue from a seed that is itself
    drawn.

    Args:
        seed: Integer tensor of shape `(2,)`, from `pass_seed`. A model starts
            up to three sequences of draws from it, at `seed`, `seed + 1` and
            `seed + 2`.
        start: Integer tensor of shape `(2,)`, the `position` of other seeds
            with the same `seed`, whose draws these continue. `None` (default)
            to begin with the first draw.
    """

    DRAWS_PER_PASS = 1 << 10
    PLACES = 1 << 16
    # Number of draws that are reserved: for `of_step`, and because sequences
    # start at up to `seed + 2`.
    _RESERVED = 3

    def __init__(self, seed: Tensor, start: Tensor | None = None) -> None:
        # The parent's constructor is not called: it would create the state
        # variable that this class avoids. Keras's PyTorch backend reads
        # `_initial_seed` and interprets `None` as a generator without a seed.
        self._initial_seed = 0
        self.seed = ops.convert_to_tensor(seed)
        self._start = self.seed if start is None else start
        self.draws = 0

    def next(self, ordered: bool = True) -> Tensor:
        """Returns the seed of the next draw, an integer tensor `(2,)`."""
        start = self._start if self._has_room(1) else self._drawn_seed()
        self.draws += 1
        seed = start + self._pair(0, self.draws)
        if keras.backend.backend() == "torch":
            # Keras's PyTorch backend adds the two numbers, so neighboring seeds
            # would have equal sums.
            seed = seed * self._pair(40_503, 1)
        return seed

    def position(self) -> Tensor:
        """Returns the seed before the next one, an integer tensor `(2,)`."""
        return self._start + self._pair(0, self.draws)

    def advance(self, draws: int) -> bool:
        """Skips the next seeds, if they are all consecutive.

        Args:
            draws: Number of seeds to skip.

        Returns:
            Whether the seeds were skipped.
        """
        has_room = self._has_room(draws)
        if has_room:
            self.draws += draws
        return has_room

    def _has_room(self, draws: int) -> bool:
        most = self.DRAWS_PER_PASS - self._RESERVED
        return self.draws + draws <= most

    def _drawn_seed(self) -> Tensor:
        # `seed - (0, 1)` precedes the seed of the first draw. No other draw
        # uses it.
        before = StatelessSeeds(self.seed - self._pair(0, 1))
        drawn = keras.random.randint((2,), 0, 2**31 - 1, seed=before)
        return ops.cast(drawn, self.seed.dtype)

    def _pair(self, first: int, second: int) -> Tensor:
        return ops.convert_to_tensor(
            np.array([first, second]), dtype=self.seed.dtype
        )

    def of_step(self) -> "StatelessSeeds":
        """Returns `StatelessSeeds` that are the same everywhere in a step.

        All layers, on all replicas and in all parts of the batch, draw the same
        numbers from these seeds.
        """
        last = self._pair(0, self.DRAWS_PER_PASS - 2)
        place = ops.mod(self.seed, self._pair(self.PLACES, 1))
        return StatelessSeeds(self.seed - place + last)


# The maximum number of places. A place is one part of a replica's batch. Each
# place has four consecutive numbers, of which the sequences of a forward pass
# use three.
MAX_PLACES = StatelessSeeds.PLACES // 4
MAX_SEED = 2**32 - 1
# 2**32 divided by the square of the golden ratio, so its first multiples are
# far apart modulo 2**32. It is odd, so its first 2**32 multiples all differ.
_FAR = 1_640_531_527


def pass_seed(run: int | Tensor, place: Tensor, step: Tensor) -> Tensor:
    """Returns the seed of a forward pass, an integer tensor of shape `(2,)`.

    The upper 16 bits of the first number hold the lower 16 bits of the run's
    seed, and its lower 16 bits hold four times the place. The upper 22 bits of
    the second number hold the step, and its lower 10 bits are for the draws of
    the pass.
    Runs with different seeds below 65,536 therefore have no draws in common. If
    a run's seed is larger, its upper 16 bits add an offset to the second
    number.

    Args:
        run: Seed of the run, an integer or integer tensor from 0 to `MAX_SEED`.
        place: Integer tensor below `MAX_PLACES` that identifies the replica and
            the part of the batch.
        step: Integer tensor of the type of `place`, int64 with TensorFlow.
            Draws repeat after 4,194,304 steps.
    """
    first = run % 2**16 * StatelessSeeds.PLACES + 4 * place
    second = run // 2**16 * _FAR + step * StatelessSeeds.DRAWS_PER_PASS
    seed = ops.stack([first, second])
    if keras.backend.backend() == "tensorflow":
        # Takes the numbers modulo 2**32. Keras would take them modulo
        # 2**31 - 2, so some seeds would coincide.
        seed = ops.cast(seed, "int32")
    return seed


def dropout(x: Tensor, rate: float, seeds: StatelessSeeds | None) -> Tensor:
    """Applies inverted dropout, or returns `x` itself if `seeds` is `None`.

    Args:
        x: Float tensor.
        rate: Float in `[0, 1)`. Probability that an element becomes zero.
        seeds: `StatelessSeeds` in training, else `None`.
    """
    if seeds is None or rate == 0:
        return x
    if keras.backend.backend() == "tensorflow":
        return _dropout_of_16_bits(x, rate, seeds.next())
    return keras.random.dropout(x, rate, seed=seeds)


def _dropout_of_16_bits(x: Tensor, rate: float, seed: Tensor) -> Tensor:
    """Applies dropout by 16 random bits for each element, in TensorFlow.

    TensorFlow's own dropout draws a float for each element, which takes twice
    as long. In bfloat16, these floats have 7 bits, so that a rate of 0.1 drops
    10.2 % of the elements.

    Args:
        x: Float tensor.
        rate: Float between 0 and 1. It is rounded to a multiple of 2^-16.
        seed: Integer tensor of shape `(2,)`.
    """
    import tensorflow as tf

    drop = min(max(round(rate * 2**16), 1), 2**16 - 1)
    size = tf.size(x, out_type=tf.int64)
    pairs = tf.random.stateless_uniform(
        [(size + 1) // 2], seed, minval=None, maxval=None, dtype=tf.uint32
    )
    bits = tf.reshape(tf.bitcast(pairs, tf.uint16), [-1])[:size]
    is_kept = tf.reshape(bits >= tf.constant(drop, tf.uint16), tf.shape(x))
    scale = tf.cast(1 / (1 - drop / 2**16), x.dtype)
    return tf.where(is_kept, x * scale, tf.zeros([], x.dtype))
