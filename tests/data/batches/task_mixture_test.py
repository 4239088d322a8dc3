"""Tests each task's share of batches, and that the plan is deterministic."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.data.batches.ragged_examples import make_examples
from tf_adapters.config import resolve
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import task_mixture as mixture_lib

SIZES = (160, 40, 10)
BATCH = 8
PASS = 20 + 5 + 2  # Batches of one pass over all tasks.


@pytest.fixture(scope="module")
def mixture():
    return mixture_lib.Mixture(
        {name: make_examples(n, i) for i, (name, n) in enumerate(_named())}
    )


def _named():
    return zip(("large", "middle", "small"), SIZES, strict=True)


def _config(sampling="annealed", seed=0, epochs=5):
    return resolve.resolve_config(
        {
            "method": {
                "name": "multitask",
                "tasks": ["large", "middle", "small"],
                "sampling": sampling,
            },
            "seed": seed,
            "train": {"batch_size": BATCH, "epochs": epochs},
        }
    )


def _plan(mixture, config, epoch):
    def plan(examples, epoch):
        return batch_plan.plan_training(
            examples.lengths,
            config.train.batch_size,
            config.seed,
            epoch,
            config.data.batching,
            config.data.fixed_lengths,
        )

    return mixture_lib.plan_mixture(
        mixture,
        plan,
        config.method.sampling,
        config.train,
        config.seed,
        epoch,
    )


def _draw(mixture, config, epoch):
    sampling = config.method.sampling
    return mixture_lib._draw(
        mixture.sizes, sampling, config.train, config.seed, epoch
    )


@pytest.mark.parametrize(
    ("sampling", "epoch", "epochs", "expected"),
    [
        # 100, 400 and 2500 examples: their roots are 10, 20 and 50.
        ("proportional", 0, 5, (100 / 3000, 400 / 3000, 2500 / 3000)),
        ("proportional", 4, 5, (100 / 3000, 400 / 3000, 2500 / 3000)),
        ("square_root", 3, 5, (10 / 80, 20 / 80, 50 / 80)),
        # a = 1, 0.6 and 0.2 in the first, third and last of five epochs:
        # 100^0.6 = 15.8489, 400^0.6 = 36.4113, 2500^0.6 = 109.3362;
        # 100^0.2 = 2.5119, 400^0.2 = 3.3145, 2500^0.2 = 4.7818; the sums
        # are 161.5964 and 10.6081.
        ("annealed", 0, 5, (100 / 3000, 400 / 3000, 2500 / 3000)),
        ("annealed", 2, 5, (0.098077, 0.225322, 0.676601)),
        ("annealed", 4, 5, (0.236790, 0.312446, 0.450764)),
        ("annealed", 0, 1, (100 / 3000, 400 / 3000, 2500 / 3000)),
        # Epochs that are more than planned are like the last one.
        ("annealed", 9, 5, (0.236790, 0.312446, 0.450764)),
        ("annealed", 9, 1, (100 / 3000, 400 / 3000, 2500 / 3000)),
    ],
)
def test_shares_are_those_computed_by_hand(sampling, epoch, epochs, expected):
    shares = mixture_lib.probabilities(
        (100, 400, 2500), sampling, epoch, epochs
    )
    np.testing.assert_allclose(shares, expected, atol=2e-6)


def test_unknown_sampling_is_named():
    with pytest.raises(ValueError, match="`cubic`. Known: annealed, prop"):
        mixture_lib.probabilities((1, 2), "cubic", 0, 1)


def test_every_batch_is_of_one_task(mixture):
    for batch in _plan(mixture, _config(), 0):
        task, own = mixture.locate(batch)
        assert 0 <= own.indices.min()
        assert own.indices.max() < len(mixture.tasks[task])
        assert own.length == mixture.tasks[task].lengths[own.indices].max()
        assert own.length == mixture.lengths[batch.indices].max()


def _same(first, second):
    return len(first) == len(second) and all(
        np.array_equal(a.indices, b.indices)
        for a, b in zip(first, second, strict=True)
    )


def test_the_plan_is_a_pure_function_of_seed_and_epoch(mixture):
    plans = [_plan(mixture, _config(), epoch) for epoch in (3, 1)]
    assert all(len(plan) == PASS for plan in plans)
    assert not _same(*plans)
    assert _same(plans[0], _plan(mixture, _config(), 3))
    other = _plan(mixture, _config(seed=1), 3)
    assert not _same(plans[0], other)


def test_no_example_is_seen_twice_before_all_are_seen_once(mixture):
    """This also holds across epochs."""
    seen = {task: [] for task in mixture.tasks}
    config = _config("square_root", epochs=8)
    for epoch in range(8):
        for batch in _plan(mixture, config, epoch):
            task, own = mixture.locate(batch)
            seen[task].extend(own.indices)
    for task, size in _named():
        passes = len(seen[task]) // size
        assert passes >= 1, task
        for turn in range(passes):
            part = seen[task][turn * size : (turn + 1) * size]
            assert sorted(part) == list(range(size)), (task, turn)


def test_draws_follow_the_shares(mixture):
    config = _config("square_root", epochs=200)
    draws = [_draw(mixture, config, e) for e in range(200)]
    shares = np.bincount(np.concatenate(draws)) / (200 * PASS)
    roots = np.sqrt(SIZES) / np.sqrt(SIZES).sum()
    # Three deviations of a share of 0.58 in 5,400 draws are 0.02.
    np.testing.assert_allclose(shares, roots, atol=0.02)


def test_annealing_gives_small_tasks_more_and_more(mixture):
    config = _config(epochs=200)
    counts = [
        (_draw(mixture, config, epoch) == 2).sum() for epoch in range(200)
    ]
    # Shares of 0.048 at the start and 0.24 at the end.
    assert np.mean(counts[150:]) > 2 * np.mean(counts[:50])


def test_fixed_batches_keep_their_size(mixture):
    config = _config()
    data = dataclasses.replace(config.data, batching="fixed", max_length=16)
    config = dataclasses.replace(config, data=data)
    for batch in _plan(mixture, config, 0):
        assert (batch.length, batch.size) == (16, BATCH)


def test_padding_next_to_choices_is_each_tasks_own():
    texts = make_examples(4)
    choices = make_examples(2)
    # Two texts an example, and three.
    ids = tf.RaggedTensor.from_row_lengths(make_examples(5).token_ids, [2, 3])
    choices = dataclasses.replace(choices, token_ids=ids)
    mixture = mixture_lib.Mixture({"texts": texts, "choices": choices})
    fixed = [
        batch_plan.Batch(np.arange(4), 16, size=8),
        batch_plan.Batch(np.array([4, 5]), 16, size=8),
    ]
    tokens = texts.lengths.sum() + ids.flat_values.shape[0]
    share = batch_plan.padding_fraction(fixed, mixture.sequence_lengths)
    assert share == 1 - tokens / (16 * 8 * (1 + 3))
