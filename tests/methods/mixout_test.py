"""Compares mixout with its formula, alone and in models."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.references import reparameterizations_numpy as reference
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.layers.mixout import Mixout
from tf_adapters.layers.stateless_seeds import StatelessSeeds
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.composed_model import compose
from tf_adapters.models.composition import Stack

RATE = 0.9
# With a dropout that would show if it were not replaced.
HEAD = heads.Classification(
    ("no", "yes", "maybe"),
    dropout_rate=0.5,
    hidden_layer="tanh",
    hidden_dropout_rate=0.5,
)
LABELS = np.array([0, 2, 1])
SEED = [8, 1024 * 3]


def _gates(shape, seeds, rate=RATE):
    noise = keras.random.uniform(shape, seed=seeds)
    return (np.asarray(noise) >= rate).ravel()


@pytest.mark.parametrize(
    ("shape", "num_input_axes"),
    [((40, 5), 1), ((40, 2, 3), 1), ((4, 10, 6), 2)],
)
def test_all_outgoing_weights_of_a_neuron_mix_together(shape, num_input_axes):
    generator = np.random.default_rng(0)
    kernel, initial, gradient = generator.normal(size=(3, *shape))
    layer = Mixout(shape, RATE, num_input_axes)
    layer.build()
    layer.start_from(initial)
    value = tf.constant(kernel, "float32")
    with tf.GradientTape() as tape:
        tape.watch(value)
        mixed = layer.call(value, StatelessSeeds([1, 2]))
        loss = tf.reduce_sum(mixed * gradient.astype("float32"))
    gates = _gates(layer.gates_shape, StatelessSeeds([1, 2]))
    assert len(gates) == 40 and 0 < gates.sum() < 12
    rows = (40, -1)
    expected = reference.mixout(
        kernel.reshape(rows), initial.reshape(rows), gates, RATE
    )
    np.testing.assert_allclose(
        np.reshape(mixed, rows), expected, rtol=1e-5, atol=1e-5
    )
    expected = reference.mixout_gradient(gradient.reshape(rows), gates, RATE)
    np.testing.assert_allclose(
        np.reshape(tape.gradient(loss, value), rows), expected, rtol=1e-5
    )
    assert layer.call(value) is value


def test_its_expected_value_is_the_kernel():
    kernel, initial = np.random.default_rng(0).normal(size=(2, 5, 3))
    layer = Mixout(kernel.shape, 0.5)
    layer.build()
    layer.start_from(initial)
    draws = [
        np.asarray(
            layer.call(tf.constant(kernel), StatelessSeeds([0, 1024 * i]))
        )
        for i in range(400)
    ]
    assert np.std(draws, axis=0).max() > 1
    np.testing.assert_allclose(np.mean(draws, axis=0), kernel, atol=0.45)


def _mixed_paths(model):
    return {
        f.name.replace("--", "/") for f in model.reparameterization.functions
    }


def test_what_follows_a_dropout_is_mixed():
    full = adapt(tiny.encoder(), methods.Full(mixout=RATE), HEAD)
    attention = ("query", "key", "value", "attention_output")
    assert _mixed_paths(full) == {
        f"transformer_layer_{i}/{name}/kernel"
        for i in range(tiny.BLOCKS)
        for name in (
            *(f"self_attention_layer/{part}" for part in attention),
            "feedforward_intermediate_dense",
        )
    } | {"head/hidden_kernel", "head/kernel"}
    houlsby = adapt(tiny.encoder(), methods.Houlsby(4, mixout=RATE), HEAD)
    paths = _mixed_paths(houlsby)
    of_head = {"head/hidden_kernel", "head/kernel"}
    assert len(paths) == 2 * tiny.BLOCKS + 2 and of_head < paths
    assert all(p.endswith("down_kernel") for p in paths - of_head)
    pooled = heads.Classification(("no", "yes"), reads="pooled_output")
    model = adapt(tiny.encoder(), methods.Full(mixout=RATE), pooled)
    assert "pooled_dense/kernel" in _mixed_paths(model)


@pytest.mark.parametrize(
    "below", [methods.Pfeiffer(4), methods.Houlsby(4, train_layer_norms=False)]
)
def test_in_a_stack_what_trains_is_mixed(below):
    encoder = tiny.encoder()
    top = methods.Pfeiffer(3, mixout=RATE)
    model = compose(encoder, Stack(adapt(encoder, below), top), HEAD)
    assert _mixed_paths(model) == _mixed_paths(adapt(encoder, top, HEAD))
    trained = [v.shape for v in model.trained_variables().values()]
    shapes = [f.shape for f in model.reparameterization.functions]
    assert set(shapes) <= set(trained)


def test_heads_mix_where_they_have_a_dropout():
    full = methods.Full(mixout=RATE)
    assert "head/score/kernel" in _mixed_paths(
        adapt(tiny.encoder(), full, heads.Choice())
    )
    encoder = tiny.encoder()
    masked = adapt(encoder, full, heads.MaskedLM.for_encoder(encoder))
    assert not any("head" in path for path in _mixed_paths(masked))


METHODS = [methods.Full, methods.Houlsby, methods.Pfeiffer]


def _models(cls):
    """Returns a model with mixout, trained a little, and one without it.

    The second one has the first one's mixed weights and no dropout.
    """
    model = adapt(tiny.encoder(dropout=0.5), cls(mixout=RATE), HEAD)
    head = heads.Classification(HEAD.labels, hidden_layer="tanh")
    plain = adapt(tiny.encoder(), cls(), head)
    initial = {k: v.numpy() for k, v in model.trained_variables().items()}
    generator = np.random.default_rng(0)
    for variable in model.trained_variables().values():
        noise = generator.normal(0, 0.05, variable.shape)
        variable.assign(variable.numpy() + noise)
    seeds, gates = StatelessSeeds(np.array(SEED) + 2), {}
    for function in model.reparameterization.functions:
        path = function.name.replace("--", "/")
        gates[path] = _gates(function.gates_shape, seeds)
    for path, variable in plain.trained_variables().items():
        value = model.trained_variables()[path].numpy()
        if path in gates:
            rows = (len(gates[path]), -1)
            mixed = reference.mixout(
                value.reshape(rows),
                initial[path].reshape(rows),
                gates[path],
                RATE,
            )
            value = mixed.reshape(value.shape)
        variable.assign(value)
    return model, plain, gates


def _loss_and_gradients(model, **options):
    variables = model.trained_variables()
    features = tiny.batch(model.encoder_info)
    with tf.GradientTape() as tape:
        losses = model.head.loss(LABELS, model(features, **options))
        loss = tf.reduce_sum(losses)
    values = [variable.value for variable in variables.values()]
    gradients = map(tf.convert_to_tensor, tape.gradient(loss, values))
    return loss, dict(zip(variables, gradients, strict=True))


@pytest.mark.parametrize("cls", METHODS)
def test_a_training_step_is_that_of_a_model_with_mixed_weights(cls):
    model, plain, gates = _models(cls)
    loss, gradients = _loss_and_gradients(model, training=True, seed=SEED)
    expected_loss, expected = _loss_and_gradients(plain, training=False)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    for path, wanted in expected.items():
        wanted = wanted.numpy()
        if path in gates:
            rows = (len(gates[path]), -1)
            by_hand = reference.mixout_gradient(
                wanted.reshape(rows), gates[path], RATE
            )
            wanted = by_hand.reshape(wanted.shape)
        # That of the keys' bias is zero but for rounding, about 1e-7.
        scale = max(1e-1, np.abs(wanted).max())
        np.testing.assert_allclose(
            gradients[path] / scale, wanted / scale, atol=1e-5, err_msg=path
        )


@pytest.mark.parametrize("cls", METHODS)
def test_evaluation_takes_the_weights_as_they_are(cls):
    model, plain, _ = _models(cls)
    named = model.trained_variables()
    for path, variable in plain.trained_variables().items():
        variable.assign(named[path])
    features = tiny.batch(model.encoder_info)
    np.testing.assert_array_equal(model(features), plain(features))


def test_each_step_and_replica_draws_again():
    model, _, _ = _models(methods.Full)
    features = tiny.batch(model.encoder_info)
    outputs = [
        np.asarray(model(features, training=True, seed=seed))
        for seed in (SEED, [8, 1024 * 4], [12, 1024 * 3])
    ]
    for other in outputs[1:]:
        assert np.abs(other - outputs[0]).max() > 1e-3
    again = model(features, training=True, seed=SEED)
    np.testing.assert_array_equal(again, outputs[0])


def test_training_starts_from_loaded_weights(tmp_path):
    """With other initial ones the first step would be of no use."""
    model, _, _ = _models(methods.Houlsby)
    saving.save_adapter(model, tmp_path / "adapter")
    loaded = saving.load_adapter(tmp_path / "adapter", tiny.encoder())
    features = tiny.batch(model.encoder_info)
    expected = np.asarray(loaded(features))
    np.testing.assert_allclose(expected, model(features), atol=1e-6)
    np.testing.assert_allclose(
        loaded(features, training=True, seed=SEED), expected, atol=1e-4
    )


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ValueError, match=f"mixout={rate}"):
        adapt(tiny.encoder(), methods.Full(mixout=rate), HEAD)
