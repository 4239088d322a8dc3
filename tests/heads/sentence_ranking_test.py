"""Compares the ranking loss, its gradients and metrics with NumPy."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tests.references import vectors_numpy
from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.heads import ranking_metrics

HEAD = heads.SentenceRanking()
WIDTH = 5
# Equal anchors, equal positives, anchors as candidates, and repeated texts.
PAIRS = [("a", "b"), ("c", "d"), ("a", "e"), ("f", "b"), ("b", "a"), ("g", "d")]
TRIPLES = [(*p, n) for p, n in zip(PAIRS, "xbyxzc", strict=True)]
DISTINCT = [("a", "b", "c"), ("d", "e", "f"), ("g", "h", "i")]
CASES = pytest.mark.parametrize("texts", [PAIRS, TRIPLES, DISTINCT])


def _targets(texts):
    fields = "abc"[: len(texts[0])]
    rows = [dict(zip(fields, row, strict=True)) for row in texts]
    return HEAD.targets(rows, fields)


def _vectors(texts, seed=0):
    """Returns a vector for each text; equal texts have equal ones."""
    random = np.random.default_rng(seed)
    names = sorted({text for row in texts for text in row})
    found = {name: random.normal(size=WIDTH) for name in names}
    found = {k: v / np.linalg.norm(v) for k, v in found.items()}
    return np.array([[found[t] for t in row] for row in texts], "float32")


def _mean_loss(vectors, texts):
    rows = range(len(texts))
    return np.mean(
        [vectors_numpy.ranking_loss(i, vectors, texts, 20) for i in rows]
    )


@CASES
def test_losses_are_those_of_each_anchor_alone(texts):
    vectors = _vectors(texts)
    losses = np.asarray(HEAD.loss(_targets(texts), vectors))
    assert losses.shape == (len(texts),) and losses.max() > 1
    for row, loss in enumerate(losses):
        expected = vectors_numpy.ranking_loss(row, vectors, texts, 20)
        np.testing.assert_allclose(loss, expected, rtol=1e-5, atol=1e-5)


@CASES
def test_gradients_are_those_of_finite_differences(texts):
    vectors = _vectors(texts, seed=1)
    x = tf.constant(vectors)
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_mean(HEAD.loss(_targets(texts), x))
    gradient = np.asarray(tape.gradient(loss, x))
    precise, expected = vectors.astype("float64"), np.zeros(vectors.shape)
    for place in np.ndindex(*vectors.shape):
        step = np.zeros(vectors.shape)
        step[place] = 1e-5
        ends = [_mean_loss(precise + s, texts) for s in (step, -step)]
        expected[place] = (ends[0] - ends[1]) / 2e-5
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(gradient, expected, atol=2e-5)


@CASES
def test_metrics_are_those_of_ranks(texts):
    vectors = _vectors(texts, seed=2)
    expected = [
        vectors_numpy.rank(row, vectors, texts) for row in range(len(texts))
    ]
    compared = HEAD.compare(list(vectors), _targets(texts))
    assert compared["predicted"].tolist() == expected and max(expected) > 1
    found = HEAD.score(("mrr", "recall_at_1", "recall_at_5"), compared)
    for name, value in vectors_numpy.ranking_metrics(expected).items():
        assert name == "recall_at_10" or found[name] == pytest.approx(value)


def test_large_sets_are_ranked_in_parts(monkeypatch):
    texts = [(f"a{i}", f"b{i % 30}") for i in range(40)]
    vectors, targets = _vectors(texts), _targets(texts)
    whole = ranking_metrics.ranks(vectors, targets)
    monkeypatch.setattr(ranking_metrics, "_ROWS_AT_ONCE", 7)
    np.testing.assert_array_equal(
        ranking_metrics.ranks(vectors, targets), whole
    )
    assert whole.max() > 10


def test_a_model_with_one_vector_for_all_texts_finds_nothing():
    vectors = np.ones((3, 2, WIDTH), "float32") / np.sqrt(WIDTH)
    targets = np.arange(6).reshape(3, 2)
    assert ranking_metrics.ranks(vectors, targets).tolist() == [3, 3, 3]


def test_a_model_without_finite_vectors_is_not_perfect():
    vectors = np.full((3, 2, WIDTH), np.nan, "float32")
    with pytest.raises(UserError, match="need finite vectors"):
        ranking_metrics.ranks(vectors, np.arange(6).reshape(3, 2))


def test_equal_texts_have_equal_numbers():
    np.testing.assert_array_equal(
        _targets([("a", "b"), ("b", "c"), ("a", "c")]),
        [[0, 1], [1, 2], [0, 2]],
    )


def test_bad_values_are_refused():
    with pytest.raises(UserError, match="`scale` must be a positive number"):
        heads.SentenceRanking(scale=0.0)
    with pytest.raises(UserError, match="Unknown metric `recall`"):
        HEAD.score(("recall",), {"predicted": [1]})
    with pytest.raises(UserError, match="ranks from 1 on"):
        HEAD.score(("mrr",), {"predicted": []})


def test_config_round_trip_through_json():
    head = heads.SentenceRanking(scale=5.0)
    config = json.loads(json.dumps(heads.to_config(head)))
    assert heads.from_config(config) == head != HEAD
