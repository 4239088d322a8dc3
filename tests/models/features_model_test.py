"""Tests the errors of Keras's functions for invalid data."""

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tests import tiny
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError

TEXTS = ["a film", "who?", "a dog", "the end"]
LABELS = np.array([0, 1, 0, 1])
HEAD = heads.Classification(("no", "yes"), dropout_rate=0.0)


def _model(head=HEAD, optimizer="sgd", **compiled):
    encoder = tiny.encoder(num_blocks=1)
    model = tf_adapters.adapt(encoder, methods.Houlsby(units=4), head)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    options = {"loss": loss, "metrics": ["accuracy"], **compiled}
    model.compile(optimizer, **options)
    return model


@pytest.fixture(scope="module")
def model():
    return _model()


@pytest.fixture(scope="module")
def features(model):
    return tiny.batch(model.encoder_info, size=4)


def _batches(x, y=LABELS):
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(2)


def _generator():
    # Nothing is known of what it yields before there is a graph.
    yield tf.constant(TEXTS), LABELS


PASSED_TEXTS = {
    "text": lambda: TEXTS[0],
    "list": lambda: TEXTS,
    "array": lambda: np.array(TEXTS),
    "objects": lambda: np.array(TEXTS, object),
    "tensor": lambda: tf.constant(TEXTS),
    "series": lambda: pd.Series(TEXTS),
    "dict": lambda: {"token_ids": np.array(TEXTS)},
}


@pytest.mark.parametrize("kind", PASSED_TEXTS)
@pytest.mark.parametrize("function", ["fit", "evaluate", "predict", "__call__"])
def test_texts_are_answered_with_what_makes_features(model, function, kind):
    labels = [LABELS] if function in ("fit", "evaluate") else []
    with pytest.raises(UserError, match=r"^Expected .*TextPacker\(tok") as info:
        getattr(model, function)(PASSED_TEXTS[kind](), *labels)
    assert len(str(info.value)) < 300 and "\n" not in str(info.value)


@pytest.mark.parametrize("function", ["fit", "evaluate", "predict"])
def test_texts_of_a_tf_data_set_are_refused_by_their_type(model, function):
    batches = _batches(TEXTS)
    if function == "predict":
        batches = batches.map(lambda x, y: x)
    with pytest.raises(UserError, match=r"TextPacker\(tokenizer, max_length"):
        getattr(model, function)(batches)


@pytest.mark.parametrize("function", ["train_on_batch", "test_on_batch"])
def test_texts_as_one_batch(model, function):
    with pytest.raises(UserError, match=r"TextPacker\(tokenizer, max_length"):
        getattr(model, function)(np.array(TEXTS), LABELS)
    with pytest.raises(UserError, match=r"TextPacker\(tokenizer, max_length"):
        model.predict_on_batch(np.array(TEXTS))


def test_banks_and_compositions_refuse_texts_and_leave_out_blocks():
    encoder = tiny.encoder(num_blocks=1)
    members = [
        tf_adapters.adapt(encoder, methods.Pfeiffer(units=4), HEAD, name=name)
        for name in ("one", "two")
    ]
    bank = tf_adapters.load_bank(members, encoder)
    parallel = tf_adapters.compose(encoder, tf_adapters.Parallel(*members))
    fusion = tf_adapters.fuse(encoder, head=HEAD, adapters=members)
    batch = tiny.batch(encoder)
    member = parallel.models[0]
    tiny.randomize(member.weights, 0.5)
    before, _ = parallel.predict(batch, verbose=0)
    member.leave_out((0,))
    after, _ = parallel.predict(batch, verbose=0)
    assert np.abs(after - before).max() > 0.01
    np.testing.assert_allclose(after, member(batch), atol=1e-6)
    for made in (bank, parallel, fusion):
        with pytest.raises(UserError, match=r"^Expected .*TextPacker\("):
            made.predict(tf.constant(TEXTS))
    with pytest.raises(UserError, match="^The inputs lack `adapter_ids`"):
        bank.predict(tiny.batch(encoder))


@pytest.mark.parametrize("wrong", ["texts", "labels"])
def test_a_call_that_failed_in_a_graph_leaves_a_model_that_trains(
    features, wrong
):
    model = _model(optimizer="adam")
    with pytest.raises(ValueError):  # noqa: PT011
        if wrong == "texts":
            model.fit(_generator(), verbose=0)
        else:  # For another loss.
            model.fit(features, np.eye(2)[LABELS], verbose=0)
    history = model.fit(features, LABELS, epochs=3, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    assert len(history["accuracy"]) == 3


class _Fails(keras.callbacks.Callback):
    """Makes a call that fails, and drops the graphs of the model."""

    def on_train_batch_end(self, batch, logs=None):
        with pytest.raises(UserError):
            self.model.predict(_generator(), verbose=0)


def test_a_call_that_failed_leaves_the_training_under_way(features):
    model = _model()
    history = model.fit(
        features, LABELS, batch_size=2, verbose=0, callbacks=[_Fails()]
    )
    assert np.isfinite(history.history["loss"]).all()


def test_lists_and_other_things_in_place_of_arrays(model, features):
    rows = {name: value.tolist() for name, value in features.items()}
    with pytest.raises(UserError, match="`token_ids`, a list. Make it `np.arr"):
        model.predict(rows)
    with pytest.raises(UserError, match="^There are no labels. Give them"):
        model.fit(features)


@pytest.mark.parametrize("make", [lambda x: x, lambda x: (x,)])
def test_a_tf_data_set_without_labels_is_said(model, features, make):
    data = tf.data.Dataset.from_tensor_slices(make(features)).batch(2)
    message = "^The tf.data set has no labels. Make it of"
    with pytest.raises(UserError, match=message):
        model.fit(data)
    with pytest.raises(UserError, match=message):
        model.fit(features, LABELS, validation_data=data, verbose=0)


@pytest.mark.parametrize("make", [list, lambda y: y.astype(object)])
def test_a_list_or_objects_of_labels_are_an_array(model, features, make):
    expected = model.evaluate(features, LABELS, verbose=0)
    assert model.evaluate(features, make(LABELS), verbose=0) == expected


def test_labels_of_several_outputs_stay_a_list(features):
    encoder = tiny.encoder(num_blocks=1)
    members = [
        tf_adapters.adapt(encoder, methods.Pfeiffer(units=4), HEAD, name=name)
        for name in ("one", "two")
    ]
    model = tf_adapters.compose(encoder, tf_adapters.Parallel(*members))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=[loss, loss])
    found = model.evaluate(features, [LABELS, LABELS], verbose=0)
    assert np.isfinite(found).all()


WRONG_LABELS = [
    ([0, 1, 2, 1], "^Row 2 .* label 2; expected a class id from 0 to 1: no, y"),
    ([0, 1, 0, -1], "^Row 3 .* label -1; expected a class id"),
    ([[0], [7], [0], [1]], "^Row 1 .* label 7; expected a class id"),
    ([0.5, 1, 0, 1], "^Row 0 .* label 0.5; expected a class id"),
    ([0, np.nan, 0, 1], "^Labels must be finite numbers. Received: nan in row"),
    (
        ["no", "yes", "no", "no"],
        r"^Labels must be numbers.*\(no, yes\): `np.ar",
    ),
    ([0, 1, None, 1], "^Labels must be numbers. Received: None in row 2"),
    (
        ["no", None, "no", "yes"],
        r"^Labels must be numbers.*\(no, yes\): `np.ar",
    ),
]


@pytest.mark.parametrize(("labels", "message"), WRONG_LABELS)
def test_labels_that_are_no_class_are_named_before_a_step(
    model, features, labels, message
):
    with pytest.raises(UserError, match=message):
        model.fit(features, np.array(labels), verbose=0)


def test_labels_of_validation_are_checked_before_training(model, features):
    before = tiny.values(model.trainable_variables)
    with pytest.raises(UserError, match="^Row 1 .* label 2; expected a class"):
        validation = (features, LABELS + 1)
        model.fit(features, LABELS, validation_data=validation, verbose=0)
    for a, b in zip(
        before, tiny.values(model.trainable_variables), strict=True
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("labels", "said"), [([0, 1, 2, 1], "2"), ([0, 1, np.nan, 1], "NaN")]
)
def test_a_label_in_a_tf_data_set_is_named_when_the_step_meets_it(
    model, features, labels, said
):
    message = f"^The data has the label {said}; expected a class id from 0 to 1"
    with pytest.raises(UserError, match=message):
        model.evaluate(_batches(features, np.array(labels)), verbose=0)


def test_labels_of_other_losses_are_left_to_them(features):
    ignoring = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=-1
    )
    soft = keras.losses.CategoricalCrossentropy(from_logits=True)
    for loss, labels in (
        (ignoring, np.array([0, 1, -1, 1])),
        (soft, np.full((4, 2), 0.5)),
    ):
        model = _model(loss=loss, metrics=None)
        assert np.isfinite(model.evaluate(features, labels, verbose=0))


def test_numbers_of_a_regression_must_be_finite(features):
    model = _model(heads.Regression(), loss="mse", metrics=None)
    with pytest.raises(UserError, match="Received: inf in row 1 "):
        model.fit(features, np.array([0.5, np.inf, 1.0, 2.0]), verbose=0)


def test_no_rows_are_said(model, features):
    none = {name: value[:0] for name, value in features.items()}
    for attempt in (
        lambda: model.fit(none, LABELS[:0]),
        lambda: model.predict(none),
        lambda: model.fit(_batches(features).take(0)),
    ):
        with pytest.raises(UserError, match="^There are no rows"):
            attempt()


@pytest.mark.parametrize("rate", [np.nan, np.inf])
def test_a_learning_rate_that_is_no_number_is_said(features, rate):
    model = _model(optimizer=keras.optimizers.SGD(rate))
    wrong_rate = f"must be a finite number. .* {rate}"
    with pytest.raises(UserError, match=wrong_rate):
        model.fit(features, LABELS, verbose=0)
    # Also each time after a call that failed in a graph.
    model.optimizer.learning_rate = 0.1
    model.fit(features, LABELS, verbose=0)
    model._forget_graphs()
    model.optimizer.learning_rate = rate
    for _ in range(2):
        with pytest.raises(UserError, match=wrong_rate):
            model.fit(features, LABELS, verbose=0)


def test_a_summary_says_the_shapes_of_outputs(model, capsys):
    model.summary(line_length=100)
    printed = capsys.readouterr().out
    assert "(None, None, 16)" in printed  # The encoder's.
    assert "(None, 2)" in printed
    assert "?" not in printed


def test_keras_exports_a_model_after_fit(model, features, tmp_path):
    model.fit(features, LABELS, verbose=0)
    model.export(tmp_path / "exported", verbose=False)
    served = tf.saved_model.load(tmp_path / "exported")
    for batch in (features, {k: v[:2, :3] for k, v in features.items()}):
        np.testing.assert_allclose(
            served.serve(batch), model.predict(batch, verbose=0), atol=1e-6
        )


@pytest.mark.parametrize(
    ("head", "further"),
    [
        (heads.Choice(), {}),
        (
            heads.MaskedLM.for_encoder(tiny.encoder(num_blocks=1)),
            {"masked_positions": np.ones((4, 1), "int32")},
        ),
    ],
)
def test_an_export_takes_what_the_head_reads(head, further, features, tmp_path):
    model = tf_adapters.adapt(tiny.encoder(num_blocks=1), methods.IA3(), head)
    if isinstance(head, heads.Choice):
        features = {k: np.stack([v] * 3, 1) for k, v in features.items()}
    features = {**features, **further}
    model.export(tmp_path / "exported", verbose=False)
    served = tf.saved_model.load(tmp_path / "exported")
    np.testing.assert_allclose(
        served.serve(features), model(features), atol=1e-6
    )
