"""Tests text models that learn vectors from pairs and triples."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.text.models import FOLDER
from tests.text.models import TEXTS
from tests.text.models import eager
from tests.text.models import text_model
import tf_adapters
from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.text.text_model import TextModel

PAIRS = list(zip(TEXTS, [*TEXTS[2:], *TEXTS[:2]], strict=True))
SCORES = [0.0, 5.0, 2.5, 1.0, 4.0, 3.0]


def _model(head=None, **options):
    head = head or heads.SentenceVector(lowest_score=0, highest_score=5)
    model = text_model(head=head, max_length=20, **options)
    tiny.randomize(model.adapter_model.trained_variables().values())
    return model


def test_pairs_with_scores_train_vectors():
    model = _model()
    before = model.evaluate(PAIRS, SCORES, verbose=0)
    model.fit(PAIRS, SCORES, epochs=5, verbose=0)
    after = model.evaluate(PAIRS, SCORES, verbose=0)
    assert after["loss"] < before["loss"]
    vectors = model.encode(TEXTS)
    alone = np.concatenate([model.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(alone, vectors, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    pairs = model.encode(PAIRS)
    np.testing.assert_allclose(pairs[:, 0], vectors, atol=1e-5)
    cosines = np.sum(pairs[:, 0] * pairs[:, 1], axis=1)
    found = [answer["score"] for answer in model.answer(PAIRS)]
    np.testing.assert_allclose(found, cosines, atol=1e-5)
    assert np.ptp(cosines) > 0.01


@pytest.mark.parametrize("count", [2, 3])
def test_pairs_and_triples_train_without_labels(count):
    model = _model(heads.SentenceRanking())
    rows = [(*pair, f"no {pair[0]}")[:count] for pair in PAIRS]
    model.fit(rows, epochs=2, verbose=0)
    found = model.evaluate(rows, verbose=0)
    assert 0 < found["loss"] and 0 < found["mrr"] <= 1
    names = "text_a", "text_b", "text_c"
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=False))
    np.testing.assert_allclose(
        model.predict(table, verbose=0), model.encode(rows)
    )
    assert model.text_fields == names[:count]


def test_the_vectors_survive_saving_and_export(tmp_path):
    model = _model(heads.SentenceRanking())
    model.fit(PAIRS, epochs=1, verbose=0)
    vectors = model.encode(TEXTS)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.encode(TEXTS), vectors, atol=1e-6)
    tf_adapters.save_adapter(model.adapter_model, tmp_path / "adapter")
    other = TextModel.from_preset(FOLDER, labels=("a", "b"), max_length=20)
    other.add_adapter("vectors", str(tmp_path / "adapter"))
    eager(other)
    np.testing.assert_allclose(other.encode(TEXTS), vectors, atol=1e-6)
    model.export(tmp_path / "exported")
    served = tf.saved_model.load(str(tmp_path / "exported")).signatures
    answer = served["encode"](text=tf.constant(TEXTS))
    np.testing.assert_allclose(answer["vector"], vectors, atol=1e-5)
    first, second = zip(*PAIRS, strict=True)
    answer = served["serving_default"](
        text_a=tf.constant(first), text_b=tf.constant(second)
    )
    scores = [answer["score"] for answer in model.answer(PAIRS)]
    np.testing.assert_allclose(answer["score"], scores, atol=1e-5)


def _equal_after_training(as_lists, dataset, head):
    """Trains two models, on lists and on a dataset; returns the second."""
    models = [_model(head, use_encoder_dropout=False) for _ in range(2)]
    options = {"epochs": 2, "verbose": 0, "shuffle": False, "batch_size": 8}
    models[0].fit(*as_lists, **options)
    models[1].fit(dataset, **options)
    vectors = [model.encode(TEXTS) for model in models]
    np.testing.assert_allclose(*vectors, atol=1e-5)
    start = _model(head, use_encoder_dropout=False).encode(TEXTS)
    assert np.abs(vectors[0] - start).max() > 1e-4
    return models[1]


def test_a_dataset_of_pairs_and_scores_trains_as_lists_do():
    pairs = tuple(map(list, zip(*PAIRS, strict=True)))
    dataset = tf.data.Dataset.from_tensor_slices((pairs, SCORES))
    head = heads.SentenceVector(lowest_score=0, highest_score=5)
    model = _equal_after_training((PAIRS, SCORES), dataset, head)
    expected = model.evaluate(PAIRS, SCORES, verbose=0)
    assert model.evaluate(dataset) == pytest.approx(expected, abs=1e-5)
    texts = tf.data.Dataset.from_tensor_slices(TEXTS)
    np.testing.assert_allclose(
        model.encode(texts), model.encode(TEXTS), atol=1e-5
    )
    with pytest.raises(UserError, match="A row needs two texts"):
        model.fit(tf.data.Dataset.from_tensor_slices((TEXTS, SCORES)))
    with pytest.raises(UserError, match=r"wrong label: 2.5.*from 0 to 1"):
        _model(heads.SentenceVector()).fit(dataset.skip(2), verbose=0)


@pytest.mark.parametrize("count", [2, 3])
def test_a_dataset_of_texts_alone_trains_a_ranking(count):
    rows = [(*pair, f"no {pair[0]}")[:count] for pair in PAIRS]
    columns = tuple(map(list, zip(*rows, strict=True)))
    dataset = tf.data.Dataset.from_tensor_slices(columns)
    model = _equal_after_training((rows,), dataset, heads.SentenceRanking())
    expected = model.evaluate(rows, verbose=0)
    assert model.evaluate(dataset) == pytest.approx(expected, abs=1e-5)
    # Ranks are over all batches, while the loss is of each batch.
    found = model.evaluate(dataset.batch(4))
    assert found["loss"] < expected["loss"]
    assert found["mrr"] == expected["mrr"]
    np.testing.assert_allclose(
        model.encode(dataset), model.encode(rows), atol=1e-5
    )


def test_what_has_no_meaning_is_refused():
    model = _model()
    with pytest.raises(UserError, match="The head makes the vectors.*'mean'"):
        model.encode(TEXTS, pooling="mean")
    with pytest.raises(UserError, match="A row needs two texts"):
        model.fit(TEXTS, SCORES, verbose=0)
    ranking = text_model(head="sentence_ranking")
    with pytest.raises(
        UserError, match="takes no labels.*only the related rows"
    ):
        ranking.fit(PAIRS[:2], [1, 0], verbose=0)
    with pytest.raises(UserError, match="Row 0 .*must hold 2 texts"):
        model.predict([(*pair, "c") for pair in PAIRS[:1]], verbose=0)
    with pytest.raises(UserError, match="nothing to train"):
        text_model("head_only", head=model.head).fit(PAIRS, SCORES, verbose=0)
