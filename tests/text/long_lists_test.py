"""Tests lists with more texts than are tokenized at once."""

import keras
import numpy as np
import pytest

from tests.text.models import LABELS
from tests.text.models import NAMES as CLASSES
from tests.text.models import TEXTS
from tests.text.models import text_model
from tf_adapters import heads
from tf_adapters.text import predicting
from tf_adapters.text import rows as text_rows
from tf_adapters.text import training
from tf_adapters.text.batches import TextBatches
from tf_adapters.text.later_batches import LaterBatches


def _take_few_at_once(monkeypatch):
    for module in (predicting, text_rows, training):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 4)


@pytest.fixture(name="few_at_once")
def _few_at_once(monkeypatch):
    _take_few_at_once(monkeypatch)


def _model(head=None):
    head = head or heads.Classification(LABELS, dropout_rate=0.0)
    return text_model(head=head, use_encoder_dropout=False)


def test_rankings_compare_all_rows_though_vectors_come_in_parts(monkeypatch):
    model = _model(heads.SentenceRanking())
    pairs = list(zip(TEXTS, [*TEXTS[1:], TEXTS[0]], strict=True))
    vectors = model.encode(pairs)
    values = model.evaluate(pairs, verbose=0)
    _take_few_at_once(monkeypatch)
    np.testing.assert_allclose(model.encode(pairs), vectors, atol=1e-5)
    assert model.evaluate(pairs, verbose=0) == pytest.approx(values, abs=1e-5)
    assert values["mrr"] < 1


def test_parts_answer_as_the_whole_does(monkeypatch):
    model = _model()
    whole = model.predict(TEXTS, verbose=0)
    answers = model.answer(TEXTS)
    vectors = model.encode(TEXTS)
    values = model.evaluate(TEXTS, CLASSES, verbose=0)
    _take_few_at_once(monkeypatch)
    np.testing.assert_allclose(
        model.predict(TEXTS, verbose=0), whole, atol=1e-5
    )
    np.testing.assert_allclose(model.encode(TEXTS), vectors, atol=1e-5)
    assert model.answer(TEXTS) == answers
    assert model.evaluate(TEXTS, CLASSES, verbose=0) == pytest.approx(
        values, abs=1e-5
    )


def test_texts_tokenized_later_train_as_those_tokenized_before(monkeypatch):
    before, later = _model(), _model()
    options = {
        "batch_size": 8,
        "epochs": 2,
        "class_weight": {"positive": 2.0},
        "sample_weight": [1.0, 0.0, 2.0, 1.0, 1.0, 1.0],
        "verbose": 0,
    }
    before.fit(TEXTS, CLASSES, **options)
    _take_few_at_once(monkeypatch)
    later.fit(TEXTS, CLASSES, **options)
    np.testing.assert_allclose(
        later.predict(TEXTS, verbose=0),
        before.predict(TEXTS, verbose=0),
        atol=1e-4,
    )


def test_only_long_lists_are_tokenized_later(few_at_once):
    model = _model()

    def batches(texts, labels, model=model):
        rows = text_rows.rows_of(texts, labels, model.head)
        packer = model.preprocessor.packer
        return training.batches_of(model.head, rows, packer, 2, 0, None)

    assert isinstance(batches(TEXTS[:4], CLASSES[:4]), TextBatches)
    assert isinstance(batches(TEXTS, CLASSES), LaterBatches)
    tagger = _model(heads.Tagging(("NOUN", "OTHER")))
    words = [text.split() for text in TEXTS]
    tags = [["NOUN"] * len(row) for row in words]
    assert isinstance(batches(words, tags, tagger), TextBatches)


def test_each_epoch_has_every_text_once_in_an_order_of_its_own(few_at_once):
    model = _model()
    rows = text_rows.rows_of(TEXTS * 4, CLASSES * 4, model.head)
    packer = model.preprocessor.packer
    batches = LaterBatches(model.head, rows, packer, 2, seed=1)
    orders = []
    for _ in "ab":
        order = np.concatenate([batch.indices for batch in batches.plan])
        orders.append(order.tolist())
        for batch, (features, targets, weights) in zip(
            batches.plan, batches, strict=True
        ):
            # Within a batch the longest come first.
            labels = [LABELS.index((CLASSES * 4)[i]) for i in batch.indices]
            assert sorted(targets) == sorted(labels)
            assert weights.tolist() == [1.0] * len(labels)
            lengths = features["padding_mask"].sum(axis=1)
            expected = packer([(TEXTS * 4)[i] for i in batch.indices])
            expected = np.sum(expected["padding_mask"], axis=1)
            assert sorted(lengths) == sorted(expected)
        batches.on_epoch_end()
    assert sorted(orders[0]) == list(range(24))
    assert sorted(orders[1]) == list(range(24))
    assert orders[0] != orders[1]


def test_rows_keep_their_order_without_a_shuffle(few_at_once):
    model = _model()
    packer = model.preprocessor.packer
    for texts in (TEXTS[:4], TEXTS * 4):  # Tokenized before, and later.
        rows = text_rows.rows_of(texts, [CLASSES[0]] * len(texts), model.head)
        batches = training.batches_of(model.head, rows, packer, 2, None, None)
        for _ in "ab":
            order = np.concatenate([batch.indices for batch in batches.plan])
            assert order.tolist() == list(range(len(texts)))
            batches.on_epoch_end()


@pytest.mark.parametrize("number", [4, 24])
def test_a_first_epoch_continues_the_orders(few_at_once, number):
    model = _model()
    packer = model.preprocessor.packer
    rows = (TEXTS * 4)[:number]
    rows = text_rows.rows_of(rows, [CLASSES[0]] * number, model.head)
    first, second = (
        training.batches_of(model.head, rows, packer, 2, 3, None, epoch)
        for epoch in (0, 1)
    )
    assert [b.indices.tolist() for b in first.plan] != [
        b.indices.tolist() for b in second.plan
    ]
    first.on_epoch_end()
    for ours, theirs in zip(first.plan, second.plan, strict=True):
        assert sorted(ours.indices) == sorted(theirs.indices)


def test_keras_sees_that_lengths_differ(few_at_once):
    model = text_model()
    # Not eagerly: only then Keras takes the first batches' shapes.
    model.compile()
    model.adapter_model.jit_compile = False
    texts = [*TEXTS, "a film", "the dull film no"]
    history = model.fit(texts, [0, 1] * 4, batch_size=1, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert isinstance(history, keras.callbacks.History)


def test_a_malformed_row_of_a_long_list_is_named(few_at_once):
    model = _model()
    texts = [*TEXTS, None]
    with pytest.raises(ValueError, match="row 6: .* must be text"):
        model.fit(texts, [0] * 7, verbose=0)
    with pytest.raises(ValueError, match="row 5: unknown label 'x'"):
        model.fit(TEXTS, [0] * 5 + ["x"], verbose=0)


def test_columns_that_are_not_read_are_not_listed():
    class Untouched(list):
        def __iter__(self):
            raise AssertionError("this column is not asked for")

    model = _model()
    table = {"text": TEXTS, "other": Untouched(TEXTS)}
    np.testing.assert_array_equal(
        model.predict(table, verbose=0), model.predict(TEXTS, verbose=0)
    )
