"""Tests texts from a `tf.data.Dataset`."""

import numpy as np
import pytest
import tensorflow as tf

from tests.text.models import FOLDER
from tests.text.models import LABELS
from tests.text.models import NAMES as CLASSES
from tests.text.models import TEXTS
from tests.text.models import eager
from tests.text.models import text_model
from tf_adapters import heads
from tf_adapters.data.tokens import packer_choice
from tf_adapters.encoders.huggingface_tokenizer import HuggingFaceTokenizer
from tf_adapters.text import streams
from tf_adapters.text.packer_layer import PackerLayer

IDS = [LABELS.index(name) for name in CLASSES]


def _dataset(*columns):
    return tf.data.Dataset.from_tensor_slices(columns)


def _with(**columns):
    return tf.data.Dataset.from_tensor_slices(columns)


def _plain(labels=LABELS):
    head = heads.Classification(labels, dropout_rate=0.0)
    return text_model(head=head, use_encoder_dropout=False)


@pytest.fixture(name="model", scope="module")
def _model():
    return _plain()


@pytest.fixture(name="trained", scope="module")
def _trained():
    """Returns the outputs after training for two epochs on lists."""
    model = _plain()
    model.fit(TEXTS, CLASSES, batch_size=8, epochs=2, verbose=0)
    return model.predict(TEXTS, verbose=0)


@pytest.mark.parametrize(
    ("dataset", "options"),
    [
        (_dataset(TEXTS, CLASSES), {"batch_size": 8}),
        (_dataset(TEXTS, IDS).batch(8), {}),
        (
            _with(review=TEXTS, stars=CLASSES),
            {"batch_size": 8, "text": "review", "label": "stars"},
        ),
        (
            tf.data.Dataset.zip(
                _with(text=TEXTS),
                tf.data.Dataset.from_tensor_slices(IDS),
            ),
            {"batch_size": 8},
        ),
    ],
    ids=["names", "ids-batched", "columns", "columns-and-ids"],
)
def test_a_dataset_trains_as_lists_do(dataset, options, trained):
    model = _plain()
    model.fit(dataset, epochs=2, verbose=0, **options)
    np.testing.assert_allclose(
        model.predict(TEXTS, verbose=0), trained, atol=1e-4
    )


def test_a_dataset_is_answered_as_a_list_is(model):
    labeled = _dataset(TEXTS, CLASSES)
    texts = tf.data.Dataset.from_tensor_slices(TEXTS)
    expected = model.predict(TEXTS, verbose=0)
    for dataset in (labeled, texts, texts.batch(4)):
        found = model.predict(dataset, batch_size=4, verbose=0)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert model.answer(texts) == model.answer(TEXTS)
    np.testing.assert_allclose(
        model.encode(texts), model.encode(TEXTS), atol=1e-5
    )
    found = model.evaluate(labeled, batch_size=4, verbose=0)
    expected = model.evaluate(TEXTS, CLASSES, verbose=0)
    assert found == pytest.approx(expected, abs=1e-5)


def test_pairs_are_tuples_of_two_texts(model):
    pairs = list(zip(TEXTS, reversed(TEXTS), strict=True))
    dataset = tf.data.Dataset.from_tensor_slices(((TEXTS, TEXTS[::-1]),))
    np.testing.assert_allclose(
        model.predict(dataset, verbose=0),
        model.predict(pairs, verbose=0),
        atol=1e-5,
    )
    by_name = _with(premise=TEXTS, hypothesis=TEXTS[::-1])
    fields = ("premise", "hypothesis")
    np.testing.assert_allclose(
        model.predict(by_name, text=fields, verbose=0),
        model.predict(pairs, verbose=0),
        atol=1e-5,
    )


def test_weights_of_a_dataset_are_factors_of_losses():
    weighted, repeated = _plain(), _plain()
    weights = [0.5, 0.0, 0.0, 0.0, 0.0, 1.5]
    weighted.fit(_dataset(TEXTS, CLASSES, weights), batch_size=8, verbose=0)
    repeated.fit(
        TEXTS,
        CLASSES,
        sample_weight=weights,
        batch_size=8,
        shuffle=False,
        verbose=0,
    )
    np.testing.assert_allclose(
        weighted.predict(TEXTS, verbose=0),
        repeated.predict(TEXTS, verbose=0),
        atol=1e-4,
    )


def test_class_weights_act_on_a_dataset():
    model = text_model(learning_rate=1e-2)
    dataset = _dataset(TEXTS, CLASSES)
    model.fit(
        dataset, epochs=10, class_weight={"positive": 0.0, 0: 1.0}, verbose=0
    )
    assert {a["label"] for a in model.answer(TEXTS)} == {"negative"}


@pytest.mark.parametrize(
    ("head", "labels", "as_lists"),
    [
        ("regression", [0.5, 2.0, 1.0], [0.5, 2.0, 1.0]),
        (heads.MultiLabel(LABELS), [[1, 0], [1, 1], [0, 0]], [[0], [0, 1], []]),
    ],
    ids=["regression", "multilabel"],
)
def test_other_heads_train_on_datasets(head, labels, as_lists):
    model = text_model(head=head)
    dataset = _dataset(TEXTS[:3], labels)
    history = model.fit(dataset, validation_data=dataset.batch(2), verbose=0)
    found = model.evaluate(dataset, verbose=0)
    expected = model.evaluate(TEXTS[:3], as_lists, verbose=0)
    assert found == pytest.approx(expected, abs=1e-5)
    assert history.history["val_loss"][-1] == pytest.approx(found["loss"])


def test_a_generator_of_any_length_is_read_once_an_epoch(model):
    read = []

    def texts():
        for text in TEXTS:
            read.append(text)
            yield text, 1

    spec = (tf.TensorSpec((), tf.string), tf.TensorSpec((), tf.int32))
    dataset = tf.data.Dataset.from_generator(texts, output_signature=spec)
    model.evaluate(dataset, batch_size=2, verbose=0)
    assert read == TEXTS


def test_texts_of_an_iterator_are_all_answered(model):
    texts = iter(TEXTS)
    dataset = tf.data.Dataset.from_generator(
        lambda: texts, output_signature=tf.TensorSpec((), tf.string)
    )
    np.testing.assert_allclose(
        model.predict(dataset, batch_size=2, verbose=0),
        model.predict(TEXTS, verbose=0),
        atol=1e-5,
    )


def test_a_training_that_has_ended_is_no_empty_dataset(model):
    dataset = _dataset(TEXTS, CLASSES)
    history = model.fit(dataset, epochs=2, initial_epoch=2, verbose=0)
    assert not history.epoch


def test_token_features_pass_as_they_are():
    model = _plain()
    packed = {k: np.asarray(v) for k, v in model.preprocessor(TEXTS).items()}
    dataset = tf.data.Dataset.from_tensor_slices((packed, IDS)).batch(3)
    model.fit(dataset, verbose=0)
    np.testing.assert_allclose(
        model.predict(dataset, verbose=0),
        model.predict(TEXTS, verbose=0),
        atol=1e-5,
    )


def test_a_tokenizer_in_python_is_replaced_by_its_like_in_a_graph():
    packer = packer_choice.packer_of(HuggingFaceTokenizer(FOLDER), 16, True)
    expected = packer(TEXTS)
    packer = streams.graph_packer_of(PackerLayer(packer))
    found = tf.function(packer)(tf.constant(TEXTS))
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def _labels(labels):
    return _dataset(TEXTS[:2], labels)


def _weighted(weights):
    return _dataset(TEXTS[:2], [0, 1], weights)


@pytest.mark.parametrize(
    ("dataset", "options", "message"),
    [
        (_labels(["negative", "Positive"]), {}, "Did you mean 'positive'"),
        (_labels([0, 7]), {}, "unknown label '7'"),
        (_labels(["", "positive"]), {}, "text without a label"),
        (_labels(["01", "1"]), {}, "unknown label '01'.* here 1"),
        (_labels([0.0, 1.0]), {}, "must be a class's name or id"),
        (_labels([[0], [1]]), {}, "must be a class's name or id"),
        (_dataset([1, 2], [0, 1]), {}, "Expected a dataset of strings"),
        (_dataset([TEXTS[:2]], [0]), {}, "a class's name or id for each text"),
        (_with(a=TEXTS), {"text": "b"}, "no column `b`"),
        (_with(a=TEXTS), {}, "Say which column"),
        (_with(text=TEXTS), {"label": "c"}, "no column `c`"),
        (_with(text=TEXTS), {}, "has no labels"),
        (_labels([0, 1]).repeat(), {}, "never ends"),
        (_labels([0, 1]).take(0), {}, "no rows|no texts"),
        (_labels([0, 1]).filter(lambda x, y: y > 1), {}, "holds no texts"),
        (_labels([0, 1]), {"y": [0, 1]}, "holds labels and weights itself"),
        (_labels([0, 1]), {"validation_split": 0.5}, "is not split"),
        (_labels([0, 1]), {"class_weight": {"x": 1.0}}, "unknown label 'x'"),
        (_labels([0, 1]), {"class_weight": np.ones(2)}, "must be a dict"),
        (_labels([0, 1]), {"label": "stars"}, "leave `label` out"),
        (_labels([0, 1]), {"text": "review"}, "leave `text` out"),
        (_weighted([1.0, np.nan]), {}, "a wrong weight: nan. Expected: finite"),
        (_weighted(["1", "2"]), {}, "weights of a dataset must be a number"),
        (_weighted([[1.0, 2.0]] * 2), {}, "weights of a dataset must be a n"),
    ],
)
def test_mistakes_end_in_sentences(model, dataset, options, message):
    with pytest.raises(ValueError, match=message):
        model.fit(dataset, verbose=0, **options)


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        (_with(text=TEXTS), "has no labels"),
        (_labels([0, 1]).repeat(), "never ends"),
        (_labels([0.0, 1.0]), "must be a class's name or id"),
    ],
)
def test_mistakes_in_validation_data_end_before_training(
    model, validation, message
):
    steps = int(model.optimizer.iterations)
    with pytest.raises(ValueError, match=message):
        model.fit(TEXTS, CLASSES, validation_data=validation, verbose=0)
    assert int(model.optimizer.iterations) == steps


@pytest.mark.parametrize(
    "validation",
    [_dataset(TEXTS, CLASSES), _with(review=TEXTS, stars=CLASSES)],
)
def test_a_validation_set_has_its_own_form(model, validation):
    columns = {"review": TEXTS, "stars": CLASSES}
    for table in (columns, _with(**columns)):
        history = model.fit(
            *(table,),
            text="review",
            label="stars",
            verbose=0,
            validation_data=validation,
        )
        assert "val_accuracy" in history.history


def test_labels_in_addition_to_a_dataset_are_refused(model):
    with pytest.raises(ValueError, match="holds labels and weights itself"):
        model.evaluate(_labels([0, 1]), [1, 0])


def test_numbers_must_be_finite():
    model = text_model(head="regression")
    with pytest.raises(ValueError, match="finite numbers"):
        model.fit(_labels([0.5, np.nan]), verbose=0)
    with pytest.raises(ValueError, match="a number for each text"):
        model.fit(_labels(["a", "b"]), verbose=0)


def test_heads_of_words_take_lists():
    model = text_model(head=heads.Tagging(("NOUN", "OTHER")))
    with pytest.raises(ValueError, match="Pass a list or a table"):
        model.predict(tf.data.Dataset.from_tensor_slices(TEXTS))


def test_names_that_are_numbers_are_names():
    model = _plain(labels=("1", "0"))
    eager(model)
    named = model.evaluate(_labels(["1", "0"]), verbose=0)
    assert model.evaluate(_labels([1, 0]), verbose=0) == named
    assert named == pytest.approx(
        model.evaluate(TEXTS[:2], ["1", "0"], verbose=0), abs=1e-5
    )
