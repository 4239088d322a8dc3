"""Tests that the search finds known minima."""

import keras
import numpy as np
import pytest

from tests import tiny
from tests.merging import made_adapters
import tf_adapters
from tf_adapters.common.errors import UserError
from tf_adapters.merging import search


def test_it_finds_the_minimum_of_a_bowl():
    best = np.array([0.7, -0.4, 0.2])
    weights, loss = search.search(
        lambda w: np.square(w - best).sum(), 3, l1=0.0, evaluations=200
    )
    np.testing.assert_allclose(weights, best, atol=0.02)
    assert loss == pytest.approx(np.square(weights - best).sum())


def test_the_weights_sizes_count():
    """Of `(w - b)^2 + l1 |w| / n` the minimum is `b` moved by `l1 / 2n`."""
    best = np.array([1.0, 0.1])
    weights, _ = search.search(
        lambda w: np.square(w - best).sum(), 2, l1=0.8, evaluations=200
    )
    np.testing.assert_allclose(weights, [0.8, 0.0], atol=0.02)


def test_weights_stay_within_their_limit():
    weights, _ = search.search(lambda w: -w.sum(), 2, evaluations=200)
    assert (weights <= search.LIMIT).all()
    assert weights[0] == pytest.approx(search.LIMIT, abs=0.01)


def test_it_begins_with_no_adapter_and_with_each_alone():
    tried = []

    def loss(weights):
        tried.append(weights.copy())
        return np.square(weights - 0.3).sum()

    search.search(loss, 2, evaluations=3)
    np.testing.assert_array_equal(tried, [[0, 0], [1, 0], [0, 1]])


def test_weights_whose_loss_is_nan_are_not_the_best():
    weights, loss = search.search(
        lambda w: np.square(w - 1).sum() if w.any() else float("nan"),
        num_weights=2,
        evaluations=20,
    )
    assert weights.any() and loss < 2
    with pytest.raises(UserError, match="The loss was NaN for all"):
        search.search(lambda w: float("nan"), 2, evaluations=5)


@pytest.mark.parametrize("evaluations", [0, -3, "5"])
def test_at_least_one_evaluation(evaluations):
    with pytest.raises(UserError, match="`evaluations` must be an integer of"):
        search.search(lambda w: 1.0, 2, evaluations=evaluations)


@pytest.mark.parametrize("method", ["pfeiffer", "lora"])
def test_it_finds_the_mixture_that_made_the_answers(method):
    encoder, members = made_adapters.two(method)
    best, batch = (0.8, -0.3), tiny.batch(encoder, size=40)
    model = tf_adapters.merge_adapters(members, encoder, "output_sum", best)
    wanted = model(batch)

    def loss(model):
        return float(keras.ops.mean(keras.ops.square(model(batch) - wanted)))

    found = tf_adapters.search_weights(
        members, encoder, loss, evaluations=80, l1=0.0
    )
    np.testing.assert_allclose(found, best, atol=0.05)
