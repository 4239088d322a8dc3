"""No two draws of a run are the same, but those that should be."""

import keras
import numpy as np
import pytest

from tf_adapters.layers.stateless_seeds import StatelessSeeds


def _seed(run, place, step, sequence):
    first = run * StatelessSeeds.PLACES + 4 * place
    second = step * StatelessSeeds.DRAWS_PER_PASS
    return keras.ops.array([first, second], dtype="int64") + sequence


def _draws(seed, number):
    seeds = StatelessSeeds(seed)
    return [tuple(np.asarray(seeds.next())) for _ in range(number)]


def test_draws_of_runs_places_steps_and_sequences_all_differ():
    """Twice as many draws as there is room for before the next step."""
    drawn = [
        draw
        for run in (0, 1)
        for place in (0, 1, 1023)
        for step in (0, 1)
        for sequence in (0, 1, 2)
        for draw in _draws(_seed(run, place, step, sequence), 2100)
    ]
    steps = [
        tuple(np.asarray(StatelessSeeds(_seed(run, 0, step, 0)).of_step().seed))
        for run in (0, 1)
        for step in (0, 1)
    ]
    assert len({*drawn, *steps}) == len(drawn) + len(steps)


def test_what_a_step_draws_alike_is_alike_in_all_places():
    seeds = [_seed(3, place, 5, 0) for place in (0, 1, 1023)]
    assert (
        len({_draws(StatelessSeeds(s).of_step().seed, 1)[0] for s in seeds})
        == 1
    )


def test_the_first_draws_are_next_to_the_seed():
    assert _draws(_seed(2, 1, 3, 0), 2) == [
        (2 * 65536 + 4, 3 * 1024 + 1),
        (2 * 65536 + 4, 3 * 1024 + 2),
    ]


def test_there_is_an_end():
    seeds = StatelessSeeds(_seed(0, 0, 0, 0))
    seeds.draws = 16 * 1021
    with pytest.raises(OverflowError, match="drawn 16336 times"):
        seeds.next()
