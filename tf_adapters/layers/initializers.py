"""Random initial values that are the same on every backend of Keras.

Keras draws random numbers with its backend, so that a seed gives other initial
weights with JAX than with TensorFlow. These initializers draw the numbers of
TensorFlow on every backend. With TensorFlow, they are Keras's own.
"""

from collections.abc import Callable
from collections.abc import Sequence
import math
from typing import Any

import keras
import numpy as np

from tf_adapters.common.types import Tensor

# Constants of Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as
# easy as 1, 2, 3").
_ROUNDS = 10
_MULTIPLIERS = np.array([0xD2511F53, 0xCD9E8D57], "uint64")
_KEY_STEPS = np.array([0x9E3779B9, 0xBB67AE85], "uint64")
_LOW = np.uint64(0xFFFFFFFF)
# The key with which TensorFlow scrambles the seeds of its stateless operations.
_SCRAMBLE = np.array([0x3EC8F720, 0x02461E29], "uint64")
# TensorFlow draws truncated numbers in groups of four, and reserves this many
# blocks of random bits for each. All but one in 10**20 groups need at most six.
_RESERVED, _NEEDED = 256, 6


class _Drawn(keras.initializers.Initializer):
    """Initializer that draws the numbers that TensorFlow would draw.

    Args:
        own: Keras's initializer for the same distribution. Only its seed is
            used.
        draw: Function from a number of values and a seed to a float32 array.
    """

    def __init__(
        self, own: Any, draw: Callable[[int, int], np.ndarray]
    ) -> None:
        self._own = own
        self._draw = draw

    def __call__(
        self, shape: Sequence[int], dtype: str | None = None
    ) -> Tensor:
        values = self._draw(math.prod(shape), self._own.seed)
        return keras.ops.convert_to_tensor(values.reshape(shape), dtype=dtype)

    def clone(self) -> keras.initializers.Initializer:
        """Returns an initializer with a new seed, as in Keras."""
        return _Drawn(self._own.clone(), self._draw)


def _portable(
    own: Any, draw: Callable[[int, int], np.ndarray]
) -> keras.initializers.Initializer:
    """Returns `own` with TensorFlow, else an initializer that uses `draw`.

    See `_Drawn` for the arguments.
    """
    is_own = keras.backend.backend() == "tensorflow"
    return own if is_own else _Drawn(own, draw)


def random_normal(stddev: float) -> keras.initializers.Initializer:
    """Returns an initializer with normally distributed values around 0."""
    return _portable(
        keras.initializers.RandomNormal(stddev=stddev),
        lambda size, seed: _normal(size, seed) * np.float32(stddev),
    )


def truncated_normal(stddev: float) -> keras.initializers.Initializer:
    """Like `random_normal`, without values beyond two standard deviations."""
    return _portable(
        keras.initializers.TruncatedNormal(stddev=stddev),
        lambda size, seed: _truncated(size, seed) * np.float32(stddev),
    )


def random_uniform(limit: float) -> keras.initializers.Initializer:
    """Returns an initializer with values uniform in `[-limit, limit)`."""
    low, width = np.float32(-limit), np.float32(limit) - np.float32(-limit)
    return _portable(
        keras.initializers.RandomUniform(-limit, limit),
        lambda size, seed: _floats(_bits(size, seed))[:size] * width + low,
    )


def _normal(size: int, seed: int) -> np.ndarray:
    return _box_muller(_bits(size, seed))[:size]


def _truncated(size: int, seed: int) -> np.ndarray:
    groups = np.arange(math.ceil(size / 4), dtype="uint64")
    blocks = groups[:, np.newaxis] * np.uint64(_RESERVED)
    blocks = blocks + np.arange(_NEEDED, dtype="uint64")
    values = _box_muller(_philox(blocks.ravel(), seed).ravel())
    values = values.reshape(len(groups), -1)
    # The first four values of a group that are not too large.
    order = np.argsort(np.abs(values) >= 2, axis=1, kind="stable")[:, :4]
    return np.take_along_axis(values, order, axis=1).ravel()[:size]


def _bits(size: int, seed: int) -> np.ndarray:
    """Returns `size` random integers of 32 bits, up to a multiple of four."""
    blocks = np.arange(math.ceil(size / 4), dtype="uint64")
    return _philox(blocks, seed).ravel()


def _floats(bits: np.ndarray) -> np.ndarray:
    """Converts integers of 32 bits to floats in [0, 1)."""
    mantissa = bits.astype("uint32") & np.uint32(0x7FFFFF)
    return (mantissa | np.uint32(127 << 23)).view("float32") - np.float32(1)


def _box_muller(bits: np.ndarray) -> np.ndarray:
    """Converts pairs of random integers to pairs of normal numbers."""
    first, second = _floats(bits).reshape(-1, 2).T
    radius = np.sqrt(-2 * np.log(np.maximum(first, np.float32(1e-7))))
    angle = np.float32(2 * math.pi) * second
    pairs = [np.sin(angle) * radius, np.cos(angle) * radius]
    return np.stack(pairs, axis=1).ravel()


def _philox(blocks: np.ndarray, seed: int) -> np.ndarray:
    """Returns TensorFlow's random bits for a seed, four integers per block.

    Args:
        blocks: Array of the numbers of the blocks.
        seed: Integer from 0 to 2**31 - 3.
    """
    start = np.array([[seed, 0, 0, 0]], "uint64")
    (mixed,) = _rounds(start, _SCRAMBLE)
    counters = np.empty((len(blocks), 4), "uint64")
    counters[:, 0], counters[:, 1] = blocks & _LOW, blocks >> np.uint64(32)
    counters[:, 2:] = mixed[2:]
    return _rounds(counters, mixed[:2])


def _rounds(counters: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Applies the ten rounds of Philox to counters `(blocks, 4)`."""
    a, b, c, d = counters.T
    for _ in range(_ROUNDS):
        first, second = _MULTIPLIERS[0] * a, _MULTIPLIERS[1] * c
        a, c = (
            (second >> np.uint64(32)) ^ b ^ key[0],
            (first >> np.uint64(32)) ^ d ^ key[1],
        )
        b, d = second & _LOW, first & _LOW
        key = (key + _KEY_STEPS) & _LOW
    return np.stack([a, b, c, d], axis=1)
