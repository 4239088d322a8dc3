"""Tests that the model is a Keras model with the right trainable weights."""

import keras
import numpy as np
import pytest

from tests import tiny
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.variable_groups import trained_table

HEAD = heads.Classification(("no", "yes"))


def test_compile_and_fit_as_with_any_keras_model():
    keras.utils.set_random_seed(0)
    encoder = tiny.encoder(dropout=0.1)
    features = tiny.batch(encoder, size=32)
    labels = (features["token_ids"][:, 0] > 25).astype("int32")
    model = adapt(encoder, methods.Houlsby(units=8), HEAD)
    model.compile(
        keras.optimizers.Adam(0.02),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    frozen = tiny.values(encoder.backbone.get_layer("token_embedding").weights)
    history = model.fit(features, labels, epochs=20, verbose=0).history
    assert history["accuracy"][-1] > 0.65
    assert history["loss"][-1] < 0.8 * history["loss"][0]
    after = encoder.backbone.get_layer("token_embedding").weights
    np.testing.assert_array_equal(frozen[0], tiny.values(after)[0])
    assert model.predict(features, verbose=0).shape == (32, 2)


def test_fit_adds_the_methods_penalty():
    encoder = tiny.encoder()
    features, labels = tiny.batch(encoder), np.array([0, 1, 0])
    losses = []
    for weight in (1e-9, 1.0):
        method = methods.AdapterBias(l0_lambda=weight, train_norms="none")
        model = adapt(encoder, method, HEAD)
        model.compile(
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        )
        losses.append(model.evaluate(features, labels, verbose=0))
    gates = tiny.BLOCKS * (tiny.FFN_WIDTH + 1)
    assert abs(losses[1] - losses[0] - 0.8318 * gates) < 0.5


def test_a_loss_is_missed_without_a_penalty():
    encoder = tiny.encoder(num_blocks=1)
    model = adapt(encoder, methods.Pfeiffer(units=2), HEAD)
    assert not model.losses
    model.compile("adam")
    with pytest.raises(ValueError, match="No loss to compute"):
        model.fit(tiny.batch(encoder), np.array([0, 1, 0]), verbose=0)


def test_a_model_around_it_has_the_penalty_once():
    encoder = tiny.encoder(num_blocks=1)
    method = methods.AdapterBias(l0_lambda=1.0, train_norms="none")
    model = adapt(encoder, method)
    inputs = {
        name: keras.Input((None,), dtype="int32", name=name)
        for name in tiny.batch(encoder)
    }
    outer = keras.Model(inputs, model(inputs)["first_token_output"])
    (penalty,) = outer.losses
    np.testing.assert_allclose(penalty, model.penalty())
    np.testing.assert_allclose(penalty, 0.8318 * (tiny.FFN_WIDTH + 1), 1e-3)


@pytest.mark.parametrize(
    "method",
    [
        methods.Houlsby(units=4),
        methods.Pfeiffer(units=4),
        methods.AdapterBias(share_vector=True),
    ],
)
def test_keras_file_round_trip(method, tmp_path):
    model = adapt(tiny.encoder(), method, HEAD, use_encoder_dropout=False)
    tiny.randomize(model.trained_variables().values())
    features = tiny.batch(model.encoder_info)
    expected = np.asarray(model(features))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(features), expected, atol=1e-6)
    assert loaded.encoder_info.fingerprint == model.encoder_info.fingerprint
    assert not loaded.use_encoder_dropout
    assert set(loaded.trained_variables()) == set(model.trained_variables())
    assert len(loaded.trainable_variables) == len(model.trainable_variables)


def test_head_that_reads_a_missing_pooler_is_refused():
    head = heads.Classification(("a", "b"), reads="pooled_output")
    with pytest.raises(ValueError, match="has no pooler"):
        adapt(tiny.encoder("roberta"), methods.HeadOnly(), head)


@pytest.mark.parametrize("reads", ["first_token", "pooled_output"])
def test_pooler_trains_only_if_it_is_read(reads):
    head = heads.Classification(("a", "b"), reads=reads)
    model = adapt(tiny.encoder(), methods.Full(), head)
    names = " ".join(model.trained_variables())
    assert ("pooled_dense" in names) == (reads == "pooled_output")


def test_heads_read_what_they_say():
    encoder = tiny.encoder()
    features = tiny.batch(encoder)
    outputs = adapt(encoder, methods.HeadOnly())(features)
    for reads, vector in (
        ("first_token", outputs["sequence_output"][:, 0]),
        ("pooled_output", outputs["pooled_output"]),
    ):
        head = heads.Classification(("a", "b", "c"), reads=reads)
        model = adapt(encoder, methods.HeadOnly(), head)
        tiny.randomize(model.head_layer.weights, 1.0)
        kernel, bias = tiny.values(model.head_layer.weights)
        expected = np.asarray(vector) @ kernel + bias
        np.testing.assert_allclose(model(features), expected, atol=1e-5)


def test_an_undeclared_variable_is_an_error():
    model = adapt(tiny.encoder(), methods.HeadOnly(), HEAD)
    model.stray = keras.layers.Dense(2)
    model.stray.build((None, 3))
    with pytest.raises(ValueError, match="nothing says whether it trains"):
        model.variable_groups()


def test_table_of_what_trains():
    model = adapt(tiny.encoder(), methods.Houlsby(units=4), HEAD)
    table = trained_table(model)
    adapters = tiny.BLOCKS * 2 * (2 * 4 * 16 + 16 + 4)
    for part, weights in (
        ("adapters", adapters),
        ("layer norms", 160),
        ("head", 34),
        ("all that trains", adapters + 160 + 34),
    ):
        (line,) = [x for x in table.split("\n") if x.startswith(part)]
        assert f" {weights:,} " in line


def test_classification_losses_and_decoding():
    logits = np.array([[2.0, 0.0], [0.0, 1.0]], "float32")
    expected = -np.log(np.exp([2.0, 0.0]) / np.exp(logits).sum(1))
    np.testing.assert_allclose(
        HEAD.loss(np.array([0, 0]), logits), expected, rtol=1e-5
    )
    decoded = HEAD.decode(logits)
    assert [row["label"] for row in decoded] == ["no", "yes"]
    assert abs(decoded[0]["probabilities"]["no"] - 0.880797) < 1e-5


def test_regression_losses_and_decoding():
    head, outputs = heads.Regression(), np.array([[2.5], [0.0]], "float32")
    np.testing.assert_allclose(
        head.loss(np.array([2.0, 1.0]), outputs), [0.25, 1]
    )
    assert head.decode(outputs) == [{"score": 2.5}, {"score": 0.0}]
    assert heads.from_config(heads.to_config(head)) == head


def test_leaving_a_block_out_is_training_without_it():
    """Same weights in the other block, so the same outputs."""
    whole = adapt(tiny.encoder(), methods.Houlsby(units=4))
    partial = adapt(tiny.encoder(), methods.Houlsby(units=4, leave_out=(0,)))
    tiny.randomize(whole.trained_variables().values())
    named = whole.trained_variables()
    for name, variable in partial.trained_variables().items():
        variable.assign(named[name])
    features = tiny.batch(whole.encoder_info)
    before = np.asarray(whole(features)["sequence_output"])
    whole.leave_out((0,))
    after = np.asarray(whole(features)["sequence_output"])
    np.testing.assert_array_equal(
        after, np.asarray(partial(features)["sequence_output"])
    )
    assert np.abs(after - before).max() > 1e-3
    assert set(whole.trained_variables()) == set(named)
    with pytest.raises(ValueError, match="no blocks"):
        whole.leave_out((7,))
