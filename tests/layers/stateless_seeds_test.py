"""Tests that all draws of a run differ, except those that must be equal."""

import keras
import numpy as np
import pytest

from tf_adapters.layers.stateless_seeds import MAX_PLACES
from tf_adapters.layers.stateless_seeds import MAX_SEED
from tf_adapters.layers.stateless_seeds import StatelessSeeds
from tf_adapters.layers.stateless_seeds import dropout
from tf_adapters.layers.stateless_seeds import pass_seed


def _seed(run, place, step, sequence=0):
    place, step = (keras.ops.array(n, dtype="int64") for n in (place, step))
    return pass_seed(run, place, step) + sequence


def _draws(seed, number):
    seeds = StatelessSeeds(seed)
    return [tuple(np.asarray(seeds.next())) for _ in range(number)]


def test_draws_of_runs_places_steps_and_sequences_all_differ():
    """Uses more draws than fit before the next step."""
    passes = [(0, 0, 0), (0, 0, 1), (0, 1024, 0), (32768, 0, 0)]
    drawn = [
        draw
        for one in passes
        for sequence in (0, 1, 2)
        for draw in _draws(_seed(*one, sequence), 1050)
    ]
    steps = [
        tuple(np.asarray(StatelessSeeds(_seed(run, 0, step)).of_step().seed))
        for run in (0, 32768)
        for step in (0, 1)
    ]
    assert len({*drawn, *steps}) == len(drawn) + len(steps)


_RUNS = [0, 1, *(2**n + i for n in range(15, 32) for i in (-1, 0, 1)), MAX_SEED]


def test_passes_of_any_seed_differ():
    """A step later or two apart, too, by as many numbers as a pass takes."""
    passes = [
        (run, place, step)
        for run in _RUNS
        for place in (0, 1, 1023, 1024, MAX_PLACES - 1)
        for step in (0, 1, 2, 1_000_000, 2**21, 2**22 - 1)
    ]
    firsts = {tuple(np.asarray(_seed(*one)).tolist()) for one in passes}
    assert len({(f // 4, s // 1024) for f, s in firsts}) == len(passes)


def test_keras_takes_each_seed_for_another():
    """It takes numbers of 64 bits modulo 2**31 - 2."""
    masks = {
        np.asarray(
            keras.random.uniform((2,), seed=StatelessSeeds(seed))
        ).tobytes()
        for run in _RUNS
        for sequence in range(3)
        for seed in [_seed(run, 0, 0, sequence)]
    }
    assert len(masks) == 3 * len(_RUNS)


@pytest.mark.parametrize("run", [3, 40_000, MAX_SEED])
def test_what_a_step_draws_alike_is_alike_in_all_places(run):
    seeds = [_seed(run, place, 5) for place in (0, 1, 1024, MAX_PLACES - 1)]
    assert (
        len({_draws(StatelessSeeds(s).of_step().seed, 1)[0] for s in seeds})
        == 1
    )


def test_the_first_draws_are_next_to_the_seed():
    """As in version 0.1.0, whose runs can be resumed."""
    assert _draws(_seed(2, 1023, 3), 2) == [
        (2 * 65536 + 4 * 1023, 3 * 1024 + 1),
        (2 * 65536 + 4 * 1023, 3 * 1024 + 2),
    ]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_dropout_drops_its_share_and_keeps_the_mean(dtype):
    x = keras.ops.ones((2001, 1001), dtype)  # An odd number of elements.
    y = np.asarray(
        keras.ops.cast(dropout(x, 0.1, StatelessSeeds([1, 2])), "float32")
    )
    # The standard error is 0.0002. The scale is rounded in bfloat16.
    assert abs(np.mean(y == 0) - 0.1) < 0.0008
    assert abs(y.mean() - 1) < 0.003
    assert len(np.unique(y)) == 2


def test_dropout_of_halves_of_a_batch_differs():
    x = keras.ops.ones((2, 1000))
    first, second = np.asarray(dropout(x, 0.5, StatelessSeeds([1, 2])))
    assert 0.4 < np.mean(first == second) < 0.6
