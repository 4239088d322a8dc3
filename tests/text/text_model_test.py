"""Tests `TextModel`, from texts to answers."""

import pathlib

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tests.fixtures import huggingface_folders
from tests.text.models import CLASSES
from tests.text.models import FOLDER
from tests.text.models import LABELS
from tests.text.models import TEXTS
from tests.text.models import eager as _eager
from tests.text.models import text_model as _model
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.config import presets
from tf_adapters.config import resolve
from tf_adapters.encoders.encoder import encoder_fingerprint
from tf_adapters.encoders.load import load_encoder
from tf_adapters.text import defaults
from tf_adapters.text import loading
from tf_adapters.text import parts
from tf_adapters.text import training
from tf_adapters.text.text_model import TextModel


def _fit(model, texts=TEXTS, labels=CLASSES, **options):
    return model.fit(texts, labels, verbose=0, **options)


@pytest.fixture(name="model", scope="module")
def _trained():
    model = _model()
    _fit(model, epochs=2)
    return model


def test_it_is_a_keras_model_that_says_what_it_is(model, capsys):
    assert isinstance(model, keras.Model)
    assert "'bert'" not in repr(model)
    assert "pfeiffer" in repr(model)
    assert "classification" in repr(model)
    model.summary()
    assert "all that trains" in capsys.readouterr().out


def test_training_follows_the_labels():
    model = _model("full", learning_rate=1e-2)
    before = model.evaluate(TEXTS, CLASSES, verbose=0)
    _fit(model, epochs=30)
    after = model.evaluate(TEXTS, CLASSES, verbose=0)
    assert after["loss"] < 0.5 * before["loss"]
    assert after["accuracy"] == 1.0
    answers = model.answer(TEXTS)
    assert [a["label"] for a in answers[:2]] == ["positive", "negative"]


def test_answers_are_those_of_the_predicted_logits(model):
    logits = model.predict(TEXTS, verbose=0)
    assert logits.shape == (6, 2)
    for row, answer in zip(logits, model.answer(TEXTS), strict=True):
        assert answer["label"] == LABELS[row.argmax()]
        share = 1 / (1 + np.exp(row[0] - row[1]))
        assert answer["probabilities"]["positive"] == pytest.approx(
            share, abs=2e-6
        )


def test_the_order_of_the_texts_does_not_matter(model):
    whole = model.predict(TEXTS, batch_size=2, verbose=0)
    alone = [model.predict([text], verbose=0)[0] for text in TEXTS]
    np.testing.assert_allclose(whole, alone, atol=1e-5)


def test_outputs_are_in_order_if_the_first_batches_are_equally_long():
    """Keras first gets two batches of different lengths; the order changes."""
    model = _model(max_length=8)
    texts = ["fine", "a b c d e f", "b c d e f g", "c d e f g h"]
    whole = model.predict(texts, batch_size=1, verbose=0)
    alone = [model.predict([text], verbose=0)[0] for text in texts]
    assert np.abs(alone[0] - np.array(alone[1:])).max(axis=1).min() > 1e-3
    np.testing.assert_allclose(whole, alone, atol=1e-5)


@pytest.mark.parametrize(
    "texts",
    [
        np.array(TEXTS),
        np.array(TEXTS, object),
        tuple(TEXTS),
        pd.Series(TEXTS),
        {"text": TEXTS},
        [{"text": text} for text in TEXTS],
        pd.DataFrame({"text": TEXTS, "other": 1}),
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_texts_come_in_many_forms(model, texts):
    np.testing.assert_array_equal(
        model.predict(texts, verbose=0), model.predict(TEXTS, verbose=0)
    )


def test_a_table_trains_by_its_columns():
    table = pd.DataFrame({"review": TEXTS, "stars": CLASSES})
    by_columns, by_lists = _model(), _model()
    by_columns.fit(table, text="review", label="stars", verbose=0)
    _fit(by_lists)
    np.testing.assert_array_equal(
        by_columns.predict(table, text="review", verbose=0),
        by_lists.predict(TEXTS, verbose=0),
    )


def test_pairs_are_packed_as_two_texts():
    model = _model()
    pairs = list(zip(TEXTS, reversed(TEXTS), strict=True))
    _fit(model, pairs, CLASSES)
    swapped = [(second, first) for first, second in pairs]
    first, second = (model.predict(p, verbose=0) for p in (pairs, swapped))
    assert np.abs(first - second).max() > 1e-4


@pytest.mark.parametrize(
    ("head", "texts", "labels", "key"),
    [
        (heads.MultiLabel(LABELS), TEXTS[:2], [["positive"], []], "labels"),
        ("regression", TEXTS[:2], [0.5, 2.0], "score"),
        (
            heads.Tagging(("NOUN", "OTHER")),
            [["a", "film"], ["the"]],
            [["OTHER", "NOUN"], ["OTHER"]],
            "tags",
        ),
        (
            heads.Span(),
            [("who", "a fine film"), ("what", "no film")],
            [
                [{"text": "film", "answer_start": 7}],
                [{"text": "film", "answer_start": 3}],
            ],
            "answer",
        ),
        (
            heads.Choice(),
            [("a film", ["fine", "dull"]), ("the", ["a", "no", "film"])],
            [0, 2],
            "choice",
        ),
    ],
    ids=["multilabel", "regression", "tagging", "span", "choice"],
)
def test_every_head_trains_and_answers(head, texts, labels, key):
    model = _model(head=head, max_length=32)
    history = _fit(model, texts, labels, epochs=2)
    assert np.isfinite(history.history["loss"]).all()
    answers = model.answer(texts)
    assert [key in answer for answer in answers] == [True, True]
    assert np.isfinite(model.evaluate(texts, labels, verbose=0)["loss"])


def test_regression_begins_at_the_mean_label_of_the_first_fit():
    model = _model(head="regression", learning_rate=1e-6)
    bias = model.adapter_model.head_layer.bias
    labels = [50 + i for i in range(len(TEXTS))]
    weights = [0.0, *[1.0] * (len(TEXTS) - 1)]
    _fit(model, TEXTS, labels, epochs=1, sample_weight=weights)
    mean = 50 + len(TEXTS) / 2
    np.testing.assert_allclose(bias, [mean], atol=1e-3)
    _fit(model, TEXTS, [0] * len(TEXTS), epochs=1)
    np.testing.assert_allclose(bias, [mean], atol=1e-3)


@pytest.mark.parametrize(
    ("head", "texts", "labels"),
    [
        (
            heads.Span(),
            [("who", "a fine film")],
            [[{"text": "film", "answer_start": 3}]],
        ),
        (heads.Span(), [("who", "")], [[{"text": "", "answer_start": 0}]]),
        (heads.Tagging(("NOUN", "OTHER")), [["a", "film"]], [["", ""]]),
    ],
    ids=["wrong place", "empty text", "no tag"],
)
def test_texts_without_any_label_to_learn_are_refused(head, texts, labels):
    with pytest.raises(UserError, match="No text has a label that can be le"):
        _fit(_model(head=head), texts, labels)


def test_validation_is_logged_by_the_heads_metrics():
    model = _model()
    stop = keras.callbacks.EarlyStopping("val_loss", patience=3)
    history = _fit(model, validation_split=0.34, callbacks=[stop]).history
    held_out = model.evaluate(TEXTS[3:], CLASSES[3:], verbose=0)
    assert history["val_loss"][-1] == pytest.approx(held_out["loss"])
    assert history["val_accuracy"][-1] == held_out["accuracy"]


def test_held_out_texts_have_the_batch_size_of_training(monkeypatch):
    model, sizes = _model(), []
    monkeypatch.setattr(
        model, "evaluate_rows", lambda rows, size=32: sizes.append(size) or {}
    )
    _fit(model, batch_size=2, validation_data=(TEXTS, CLASSES))
    assert sizes == [2]


def test_weights_of_rows_count_as_often_as_they_say():
    head = heads.Classification(LABELS, dropout_rate=0.0)
    weighted, repeated = (
        _model(head=head, use_encoder_dropout=False) for _ in "ab"
    )
    options = {"batch_size": 8, "shuffle": False}
    _fit(weighted, sample_weight=[3, 0, 0, 0, 0, 0], **options)
    _fit(
        repeated,
        TEXTS[:1] * 3 + TEXTS[3:],
        CLASSES[:1] * 3 + [0, 0, 0],
        **(options | {"sample_weight": [1, 1, 1, 0, 0, 0]}),
    )
    np.testing.assert_allclose(
        weighted.predict(TEXTS, verbose=0),
        repeated.predict(TEXTS, verbose=0),
        atol=1e-4,
    )


def test_a_class_without_weight_is_not_learned():
    model = _model(learning_rate=1e-2)
    _fit(model, epochs=10, class_weight={"positive": 0.0, 0: 1.0})
    assert {a["label"] for a in model.answer(TEXTS)} == {"negative"}


def test_weights_and_held_out_texts_are_both_of_all_texts():
    head = heads.Classification(LABELS, dropout_rate=0.0)
    split, alone = (_model(head=head, use_encoder_dropout=False) for _ in "ab")
    weights, options = [3, 0, 1, 2], {"batch_size": 8, "shuffle": False}
    held_out = [5, 5]  # Has no effect.
    both = {
        "sample_weight": weights + held_out,
        "class_weight": {"positive": 2},
    }
    _fit(split, validation_split=0.33, **both, **options)
    both["sample_weight"] = weights
    _fit(alone, TEXTS[:4], CLASSES[:4], **both, **options)
    np.testing.assert_array_equal(
        split.predict(TEXTS, verbose=0), alone.predict(TEXTS, verbose=0)
    )


def test_a_call_that_fails_does_not_change_which_texts_are_read(model):
    before = model.text_fields
    pairs = [(text, text) for text in TEXTS]
    with pytest.raises(UserError, match="unknown label"):
        _fit(model, pairs, validation_data=(pairs, ["?"] * 6))
    assert model.text_fields == before == ("text",)


def test_a_training_that_fails_does_not_change_which_texts_are_read(model):
    class Failing(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise RuntimeError("stop")

    table = {"review": TEXTS, "label": CLASSES}
    with pytest.raises(RuntimeError, match="stop"):
        model.fit(table, text="review", callbacks=[Failing()], verbose=0)
    assert model.text_fields == ("text",)


def test_a_disabled_adapter_is_neither_trained_nor_saved(model, tmp_path):
    with model.disabled():
        model.compile()
        with pytest.raises(UserError, match="disabled here. Train after"):
            _fit(model)
        with pytest.raises(UserError, match="disabled here. Save the adapter"):
            model.save_adapter(tmp_path / "reviews")
    assert list(tmp_path.iterdir()) == []


def test_an_adapter_of_another_length_is_warned_of(model, tmp_path, caplog):
    model.save_adapter(tmp_path / "long")
    for length in (model.preprocessor.max_length, 8):
        assert not caplog.records
        other = _model(max_length=length)
        other.add_adapter("long", tmp_path / "long")
    (record,) = caplog.records
    said = f"max_length={model.preprocessor.max_length}, but this model cuts"
    assert said in record.getMessage()
    with pytest.raises(UserError, match="has its own labels"):
        other.add_adapter("own", tmp_path / "long", labels=("a", "b"))
    assert list(other.adapters.models) == ["default", "long"]


def test_an_encoder_is_a_path_or_loaded_with_its_type():
    model = TextModel.from_preset(pathlib.Path(FOLDER), labels=LABELS)
    with pytest.raises(UserError, match="Pass `dtype='bfloat16'` to `load_"):
        TextModel.from_preset(
            model.encoder_info, dtype="bfloat16", labels=LABELS
        )


def test_class_weights_of_numpy_are_read():
    names = {np.int64(0): np.float32(2.0), np.str_("positive"): 0.5}
    weights = training.weights_by_id(heads.Classification(LABELS), names)
    assert weights == {0: 2.0, 1: 0.5}


def test_without_a_seed_texts_are_shuffled():
    seed = _model(seed=None).seed
    assert isinstance(seed, int)
    assert _model(seed=None).seed != seed


def test_a_disabled_model_may_be_disabled_again(model):
    with model.disabled():
        outputs = model.predict(TEXTS, verbose=0)
        with model.disabled():
            again = model.predict(TEXTS, batch_size=None, verbose=0)
        np.testing.assert_array_equal(again, outputs)
        assert model.active == "disabled"
    assert model.active == "default"


def test_a_text_of_several_inputs_has_no_vector():
    model = _model(head=heads.Tagging(("X", "Y")), max_length=8)
    assert model.encode([["a", "film"], ["a"]]).shape[0] == 2
    with pytest.raises(UserError, match="no single vector"):
        model.encode([["film"] * 20, ["a"]])
    with pytest.raises(UserError, match="no single vector"):
        _model(head=heads.Span()).encode([("who", "")])


def test_a_head_for_pretraining_only_encodes():
    encoder, tokenizer = load_encoder(FOLDER)
    size = tokenizer.vocabulary_size()
    head = heads.MaskedLM(size, encoder.backbone.hidden_dim)
    model = TextModel(encoder, tokenizer, head=head)
    assert len(model.encode(TEXTS)) == 6
    for use in (model.fit, model.predict, model.explain):
        with pytest.raises(UserError, match="--pretrain_steps"):
            use(TEXTS)


def test_a_saved_adapter_answers_alike(model, tmp_path):
    model.save_adapter(tmp_path / "reviews")
    loaded = loading.load(tmp_path / "reviews")
    assert loaded.answer(TEXTS) == model.answer(TEXTS)
    assert loaded.preprocessor.max_length == model.preprocessor.max_length


def test_a_loaded_adapter_has_the_given_seed_and_the_stored_length(tmp_path):
    _model(max_length=9).save_adapter(tmp_path / "films")
    loaded = [
        loading.load(tmp_path / "films", seed=seed, max_length=None)
        for seed in (0, 1, 1)
    ]
    assert [model.preprocessor.max_length for model in loaded] == [9] * 3
    features = loaded[0].preprocessor(TEXTS)
    zero, one, again = (
        np.asarray(model.adapter_model(features, training=True))
        for model in loaded
    )
    assert np.abs(zero - one).max() > 1e-4
    np.testing.assert_array_equal(one, again)


def test_vectors_are_means_over_the_texts_own_tokens(model):
    vectors = model.encode(TEXTS)
    alone = np.concatenate([model.encode([text]) for text in TEXTS])
    np.testing.assert_allclose(vectors, alone, atol=1e-5)
    assert vectors.shape == (6, model.adapter_model.encoder.width)
    features = model.preprocessor(TEXTS[:1])
    outputs = model.adapter_model.encode(features)
    np.testing.assert_allclose(
        vectors[0], np.mean(outputs["sequence_output"][0], axis=0), atol=1e-5
    )


def test_several_adapters_take_turns():
    model = _model("houlsby", learning_rate=1e-2)
    loaded = encoder_fingerprint(model.encoder_info)
    _fit(model)
    first = model.predict(TEXTS, verbose=0)
    model.add_adapter("spam", methods.BitFit(), labels=("ham", "spam", "other"))
    _eager(model)
    _fit(model, labels=["ham", "spam", "other"] * 2)
    second = model.predict(TEXTS, verbose=0)
    model.set_active("default")
    np.testing.assert_array_equal(model.predict(TEXTS, verbose=0), first)
    model.set_active("spam")
    np.testing.assert_array_equal(model.predict(TEXTS, verbose=0), second)
    with model.disabled():
        assert encoder_fingerprint(model.encoder_info) == loaded
        assert np.abs(model.predict(TEXTS, verbose=0) - second).max() > 1e-3
    np.testing.assert_array_equal(model.predict(TEXTS, verbose=0), second)


def test_a_folder_becomes_another_adapter(model, tmp_path):
    model.save_adapter(tmp_path / "first")
    other = _model("lora")
    before = other.predict(TEXTS, verbose=0)
    other.add_adapter("first", tmp_path / "first")
    np.testing.assert_allclose(
        other.predict(TEXTS, verbose=0),
        model.predict(TEXTS, verbose=0),
        atol=1e-5,
    )
    other.set_active("default")
    np.testing.assert_array_equal(other.predict(TEXTS, verbose=0), before)


def test_without_a_preprocessor_it_takes_token_features():
    encoder, tokenizer = load_encoder(FOLDER)
    model = TextModel(encoder, labels=LABELS, preprocessor=None)
    packed = TextModel(encoder, tokenizer, labels=LABELS).preprocessor(TEXTS)
    features = {name: np.asarray(value) for name, value in packed.items()}
    _eager(model)
    model.fit(features, np.array([1, 0, 1, 0, 0, 1]), verbose=0)
    assert model.predict(features, verbose=0).shape == (6, 2)
    for use in (model.predict, model.answer, model.encode, model.explain):
        with pytest.raises(UserError, match="no preprocessor"):
            use(TEXTS)


def test_a_backbone_of_keras_hub_is_an_encoder_too():
    encoder, tokenizer = load_encoder(FOLDER)
    model = TextModel(encoder.backbone, tokenizer, labels=LABELS)
    _eager(model)
    _fit(model)
    assert len(model.answer(TEXTS)) == 6


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda m: _fit(m, "a film", ["positive"]),
            r"a list of texts.* Received: 'a film'\. Put one text into a list",
        ),
        (lambda m: _fit(m, 3, ["positive"]), r"Received: 3\.$"),
        (lambda m: _fit(m, TEXTS, CLASSES[:3]), "6 in `text`, 3 in `label`"),
        (
            lambda m: _fit(m, TEXTS, ["Positive"] * 6),
            "unknown label 'Positive'",
        ),
        (lambda m: _fit(m, [None, "a"], [0, 1]), "row 0: .* must be text"),
        (lambda m: _fit(m, [3.5, "a"], [0, 1]), "row 0: .* must be text"),
        (lambda m: m.fit({"review": TEXTS}, CLASSES), "Say which column"),
        (lambda m: m.fit({"a": TEXTS}, text="b"), "no column `b`"),
        (lambda m: m.fit({"text": TEXTS}, label="c"), "no column `c`"),
        (lambda m: _fit(m, [], []), "There are no texts"),
        (lambda m: m.answer([{"text": "a"}, "b"]), r"Row 1 .*a dict.*'b'"),
        (lambda m: m.answer([{"text": "a"}, None]), "Row 1 .*must be a dict"),
        (
            lambda m: m.fit({"text": TEXTS}, CLASSES, label="stars"),
            "not both. Received: label='stars'",
        ),
        (
            lambda m: m.export("x", "onnx", texts={"review": TEXTS}),
            r"rename columns to \['text'\]",
        ),
        (
            lambda m: m.export(
                "x", "onnx", texts=tf.data.Dataset.from_tensors(TEXTS)
            ),
            "`texts` must be a list or a table",
        ),
        (
            lambda m: loading.load("x", m.encoder_info, dtype="bfloat16"),
            "to `load_encoder`",
        ),
        (lambda m: _fit(m, validation_split=0.999), "leaves none"),
        (lambda m: _fit(m, validation_split="0.2"), "number between 0 and 1"),
        (lambda m: _fit(m, validation_split=np.nan), "number between 0 and 1"),
        (lambda m: _fit(m, initial_epoch=-1), "initial_epoch=-1"),
        (
            lambda m: m.export("x", verbose=False),
            "`export` of texts does not support `verbose`",
        ),
        (lambda m: _fit(m, sample_weight=[1.0]), "for each of the 6 texts"),
        (
            lambda m: m.evaluate(TEXTS, CLASSES, sample_weight=[1.0] * 6),
            "`evaluate` of texts does not support `sample_weight`",
        ),
        (
            lambda m: m.predict(TEXTS, steps=1, callbacks=None),
            "`predict` of texts does not support `steps`",
        ),
        (
            lambda m: _fit(m, validation_data=(TEXTS, CLASSES, [1.0] * 6)),
            "does not support weights",
        ),
        (
            lambda m: _fit(m, validation_freq=2, validation_steps=None),
            "`fit` of texts does not support `validation_freq`",
        ),
        (
            lambda m: _fit(m, validation_batch_size=2),
            "`fit` of texts does not support `validation_batch_size`",
        ),
        (lambda m: m.predict(TEXTS, batch_size=0), "batch_size=0"),
        (
            lambda m: _fit(m, class_weight={"positive": np.nan}),
            "a finite number.* Received: {'positive': nan}",
        ),
        (lambda m: _fit(m, class_weight="balanced"), "must be a dict"),
        (lambda m: m.set_active("nobody"), "no adapter `nobody`"),
        (lambda m: m.add_adapter("disabled", "lora"), "without an adapter"),
        (lambda _: _model(adapter_name="a/b"), "without a slash"),
        (
            lambda m: loading.load("x", windows=3),
            "does not take windows. Besides .*max_length",
        ),
        (lambda m: m.add_adapter("default", "lora"), "already"),
        (lambda m: m.save("model.h5"), "save_adapter"),
        (lambda m: m.export("films", format="tflite"), "tf_saved_model"),
        (lambda _: _model(head="regression", labels=LABELS), "not both"),
        (lambda _: _model(labels=None), "needs the names of its classes"),
        (lambda _: _model("hulsby"), "houlsby"),
        (lambda _: _model(learning_rate=-1.0), "learning_rate"),
        (lambda _: _model(learning_rate=np.nan), "learning_rate"),
        (lambda _: _model(max_length=0), "max_length=0"),
        (lambda _: _model(max_length="32"), "an integer.*max_length='32'"),
        (lambda _: _model(tokenizer=str), "brings its tokenizer"),
        (
            lambda _: loading.load("x", tokenizer=str),
            "brings its tokenizer",
        ),
        (lambda _: _model(seed=-1), "`seed` must be an integer"),
        (lambda _: _model(preprocessor="none"), '`preprocessor` is "auto"'),
        (
            lambda m: _model(preprocessor=m.preprocessor.packer.tokenizer),
            '`preprocessor` is "auto"',
        ),
        (lambda m: _fit(m, sample_weight=list("abcdef")), "finite number"),
        (
            lambda m: _model(max_length=9, preprocessor=m.preprocessor),
            "Leave `max_length` out. Received: max_length=9",
        ),
        (
            lambda m: _fit(
                m, TEXTS[:2], pd.DataFrame([[0, 1]] * 2, None, LABELS)
            ),
            "not a table: pass",
        ),
        (lambda m: _fit(m, TEXTS[:2], dict.fromkeys(LABELS)), "not a table"),
        (lambda m: loading.load("nowhere"), "nowhere"),
    ],
)
def test_mistakes_end_in_sentences(model, use, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        use(model)
    assert list(tmp_path.iterdir()) == []


def test_the_papers_rate_is_that_of_the_preset():
    model = _model("houlsby", learning_rate="paper")
    assert _rate(model) == pytest.approx(3e-4)
    # A preset of the same method, with another rate.
    model.add_adapter("other", "houlsby_han2021", labels=LABELS)
    assert _rate(model) == pytest.approx(1e-4)
    model.set_active("default")
    model.compile()
    assert _rate(model) == pytest.approx(3e-4)


def _rate(model):
    return float(model.optimizer.learning_rate)


# A fusion needs trained adapters, and `no_bert` has no encoder. A run of
# `multitask` has tasks.
_OTHERS = {"fusion", "fusion_multitask", "multitask", "no_bert"}


@pytest.mark.parametrize("name", sorted({*presets.preset_names()} - _OTHERS))
def test_a_preset_is_the_same_method_as_in_a_run(name):
    run = resolve.resolve_config({"data": {"file": "a.csv"}, "method": name})
    method = parts.as_method(name)
    assert method == run.method
    # The model of a loaded adapter does not know the preset's name.
    assert defaults.learning_rate_for(
        {"name": name}
    ) == defaults.learning_rate_for(methods.to_config(method))


def test_a_union_has_the_lowest_rate_of_its_parts():
    rates = {
        name: defaults.learning_rate_for({"name": name})
        for name in ("mam", "parallel", "prefix_tuning", "unipelt")
    }
    assert rates["mam"] == rates["parallel"] < rates["prefix_tuning"]
    assert rates["unipelt"] == rates["prefix_tuning"]


def test_a_reloaded_model_keeps_the_rate_of_its_preset(tmp_path):
    model = _model("parallel", learning_rate="paper")
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    loaded.compile()
    assert _rate(loaded) == pytest.approx(1e-4)


def test_a_sentence_piece_encoder_answers():
    folder = str(huggingface_folders.folder("xlm_roberta"))
    model = _model(folder=folder)
    other = _model(folder=folder)  # Made while the first one is there.
    for one in (model, other):
        assert len(one.answer(TEXTS)) == 6


def test_an_export_answers_texts_as_the_model_does(model, tmp_path):
    path = tmp_path / "films"
    for _ in range(2):  # The second one replaces the first.
        model.export(path)
    signatures = tf.saved_model.load(str(path)).signatures
    assert set(signatures) == {"serving_default", "token_ids"}
    found = signatures["serving_default"](tf.constant(TEXTS))
    answers = model.answer(TEXTS)
    labels = [label.decode() for label in found["label"].numpy()]
    assert labels == [answer["label"] for answer in answers]
    np.testing.assert_allclose(
        found["probabilities"][:, 1],
        [answer["probabilities"]["positive"] for answer in answers],
        atol=1e-5,
    )
    assert [p.name for p in tmp_path.iterdir()] == ["films"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file.txt").touch()
    with pytest.raises(UserError, match="holds no SavedModel"):
        model.export(tmp_path / "mine")


@pytest.mark.parametrize("method", ["fusion", methods.Fusion(("a", "b"))])
def test_a_fusion_is_not_a_method_of_a_text_model(method):
    with pytest.raises(UserError, match="needs trained adapters"):
        parts.as_method(method)
