"""Compares vectors of texts, and the loss of their cosines, with NumPy."""

import json
import types

from keras import ops
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.heads import token_vectors
from tests.references import vectors_numpy
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.models.adapter_model import adapt

HEAD = heads.SentenceVector(lowest_score=1.0, highest_score=5.0)
LENGTHS = np.array([[5, 2], [1, 4], [3, 3]])
WIDTH, TOKENS = 6, 5


def _outputs():
    mask = (np.arange(TOKENS) < LENGTHS[..., None]).astype("int32")
    random = np.random.default_rng(0)
    found = token_vectors.outputs(random, mask.reshape(-1, TOKENS), WIDTH)
    first = found["sequence_output"][:, 0]
    return {**found, "first_token_output": first, "padding_mask": mask}


@pytest.mark.parametrize("pooling", ["mean", "first_token"])
def test_each_text_has_the_vector_of_its_own_tokens(pooling):
    outputs = _outputs()
    layer = heads.SentenceVector(token_pooling=pooling).make_layer()
    vectors = np.asarray(layer(outputs))
    tokens = outputs["sequence_output"].reshape(3, 2, TOKENS, WIDTH)
    for row, place in np.ndindex(3, 2):
        expected = vectors_numpy.vector(
            tokens[row, place, : LENGTHS[row, place]], pooling
        )
        np.testing.assert_allclose(vectors[row, place], expected, atol=1e-5)
    alone = {**outputs, "padding_mask": outputs["padding_mask"].reshape(6, -1)}
    np.testing.assert_allclose(layer(alone), vectors.reshape(6, WIDTH))


def test_losses_and_gradients_are_those_of_the_cosines():
    vectors = tf.constant(HEAD.make_layer()(_outputs()))
    targets = HEAD.targets([{"label": x} for x in (1, 2.5, 5)])
    np.testing.assert_allclose(targets, [0, 0.375, 1])
    with tf.GradientTape() as tape:
        tape.watch(vectors)
        losses = HEAD.loss(targets, vectors)
    gradients = tape.gradient(losses, vectors)
    for row, (pair, target) in enumerate(zip(vectors, targets, strict=True)):
        first, second = np.asarray(pair)
        loss = vectors_numpy.cosine_loss(first, second, target)
        np.testing.assert_allclose(losses[row], loss, atol=1e-5)
        for place, (one, other) in enumerate(
            [(first, second), (second, first)]
        ):
            expected = vectors_numpy.cosine_gradient(one, other, target)
            np.testing.assert_allclose(
                gradients[row, place], expected, atol=1e-5
            )
    assert np.max(np.abs(gradients)) > 0.5


def test_metrics_are_correlations_of_cosines():
    vectors = np.asarray(HEAD.make_layer()(_outputs()))
    targets = np.array([0.1, 0.5, 0.4], "float32")
    cosines = [np.dot(*pair) for pair in vectors]
    found = HEAD.evaluate(("spearman", "pearson"), list(vectors), targets)
    places = [np.argsort(np.argsort(x)) for x in (cosines, targets)]
    assert found["spearman"] == pytest.approx(np.corrcoef(*places)[0, 1])
    expected = np.corrcoef(cosines, targets)[0, 1]
    assert found["pearson"] == pytest.approx(expected, abs=1e-5)
    assert abs(expected) > 0.1


def test_answers_are_vectors_of_single_texts_and_scores_of_pairs():
    vectors = np.asarray(HEAD.make_layer()(_outputs()))
    (alone, *_) = json.loads(json.dumps(HEAD.decode(vectors[:, :1])))
    np.testing.assert_allclose(alone["vector"], vectors[0, 0], atol=1e-5)
    decoded = HEAD.decode(list(vectors))
    for answer, pair in zip(decoded, vectors, strict=True):
        assert answer == {"score": pytest.approx(np.dot(*pair), abs=1e-5)}
    (triple,) = HEAD.decode([np.concatenate([vectors[0], vectors[1, :1]])])
    expected = np.dot(vectors[0, 0], vectors[1, 0])
    assert triple["negative_score"] == pytest.approx(expected, abs=1e-5)


def test_a_model_encodes_a_text_as_if_it_were_alone():
    encoder = tiny.encoder()
    model = adapt(encoder, methods.Houlsby(units=4), HEAD)
    tiny.randomize(model.trained_variables().values())
    flat = tiny.batch(encoder, size=6, tokens=7)
    pairs = {k: v.reshape(3, 2, 7) for k, v in flat.items()}
    vectors = np.asarray(model(pairs))
    np.testing.assert_allclose(model(flat), vectors.reshape(6, -1), atol=1e-5)
    norms = np.linalg.norm(vectors, axis=-1)
    np.testing.assert_allclose(norms, 1, atol=1e-5)
    assert np.ptp(vectors[:, 0], axis=0).max() > 0.1


class _Lengths:
    """A packer whose tokens are the lengths of words."""

    special_tokens = types.SimpleNamespace(pad=0)

    def tokenize_rows(self, texts):
        ids = [np.array([*map(len, t.split())], "int32") for t in texts]
        return ids, [0 * row for row in ids]


ROWS = [
    {"a": "why so", "b": "it", "label": 1},
    {"a": "no", "b": "a bb", "label": 4},
]


def test_each_text_of_a_row_becomes_a_sequence():
    encoded = HEAD.encode(ROWS, ("a", "b"), _Lengths())
    lists = [[ids.tolist() for ids in row] for row in encoded.token_ids]
    assert lists == [[[3, 2], [2]], [[2], [1, 2]]]
    assert [len(row) for row in encoded.segment_ids] == [2, 2]
    np.testing.assert_allclose(encoded.targets, [0, 0.75])
    alone = HEAD.encode(ROWS, ("b",), _Lengths(), labeled=False)
    assert [len(row) for row in alone.token_ids] == [1, 1]
    with pytest.raises(UserError, match="A row needs two texts"):
        HEAD.encode(ROWS, ("b",), _Lengths())


def test_the_range_of_scores_comes_from_the_rows():
    head = heads.SentenceVector(highest_score=8).for_rows(ROWS)
    assert (head.lowest_score, head.highest_score) == (1, 8)
    with pytest.raises(UserError, match="Row 1 .*score 4; expected .*0 to 1"):
        heads.SentenceVector().targets(ROWS)
    with pytest.raises(UserError, match="`lowest_score` must be less"):
        heads.SentenceVector(lowest_score=3.0, highest_score=3.0)


def test_the_other_limit_can_be_missing_until_the_rows_are_known():
    head = heads.SentenceVector(lowest_score=1)
    known = head.for_rows(ROWS)
    assert known.score_range == (1, max(row["label"] for row in ROWS))
    with pytest.raises(UserError, match="`lowest_score` must be less"):
        head.targets(ROWS)


def test_config_round_trip_through_json():
    head = heads.SentenceVector("first_token", 0, 5)
    config = json.loads(json.dumps(heads.to_config(head)))
    assert heads.from_config(config) == head != HEAD
    assert (HEAD.reads, head.reads) == ("sequence_output", "first_token")


def test_the_loss_works_in_keras():
    encoder = tiny.encoder()
    model = adapt(encoder, methods.Pfeiffer(units=4), HEAD)
    pairs = {
        k: v.reshape(3, 2, 7)
        for k, v in tiny.batch(encoder, size=6, tokens=7).items()
    }
    model.compile("adam", HEAD.loss)
    targets = np.array([0.0, 0.5, 1.0], "float32")
    loss = float(ops.mean(HEAD.loss(targets, model(pairs))))
    found = model.evaluate(pairs, targets, verbose=0)
    assert found == pytest.approx(loss, rel=1e-5) and loss > 0.01
