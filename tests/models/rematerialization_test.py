"""Tests that recomputed activations give the same gradients."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.methods import cases
from tf_adapters import heads
from tf_adapters.models.adapter_model import AdapterModel

HEAD = heads.Classification(("no", "yes", "maybe"), dropout_rate=0.1)
LABELS = np.array([0, 2, 1])
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
# What trains the encoder, computes its weights, and has frozen members.
METHODS = ("full", "houlsby", "lora", "diff_pruning", "fusion", "full_mixout")


def _model(name, remat, num_blocks=2):
    encoder = tiny.encoder(dropout=0.3, num_blocks=num_blocks)
    # Mixout mixes the head with the values that it starts from.
    keras.utils.set_random_seed(0)
    model = AdapterModel(encoder, cases.EVERY[name], HEAD, remat=remat)
    trained = model.trained_variables()
    tiny.randomize([v for v in model.weights if model.is_added(v)], 0.1)
    return model, trained


def _loss_and_gradients(name, remat):
    model, trained = _model(name, remat)
    values = [variable.value for variable in trained.values()]
    features = tiny.batch(model.encoder_info)
    with tf.GradientTape() as tape:
        outputs = model(features, training=True, seed=np.array([3, 4]))
        loss = tf.reduce_sum(HEAD.loss(LABELS, outputs))
    gradients = map(tf.convert_to_tensor, tape.gradient(loss, values))
    return loss, dict(zip(trained, gradients, strict=True))


@pytest.mark.parametrize("name", METHODS)
def test_loss_and_gradients_are_equal_with_dropout(name):
    """So the second pass draws the masks of the first one."""
    loss, gradients = _loss_and_gradients(name, remat=False)
    again, found = _loss_and_gradients(name, remat=True)
    np.testing.assert_allclose(again, loss, rtol=1e-6)
    for key, gradient in gradients.items():
        np.testing.assert_allclose(
            found[key], gradient, rtol=1e-5, atol=1e-6, err_msg=key
        )


@pytest.mark.parametrize("name", ["pfeiffer", "full_mixout"])
def test_each_block_is_computed_twice(name):
    counts = []
    for remat in (False, True):
        model, trained = _model(name, remat)
        values = [variable.value for variable in trained.values()]
        features = tiny.batch(model.encoder_info)

        @tf.function(autograph=False)
        def step(model=model, features=features, values=values):
            with tf.GradientTape() as tape:
                outputs = model(features, training=True, seed=[3, 4])
            return tape.gradient(outputs, values)

        operations = step.get_concrete_function().graph.get_operations()
        counts.append(sum(one.type == "Softmax" for one in operations))
    assert counts == [tiny.BLOCKS, 2 * tiny.BLOCKS]


def test_keras_fit_and_a_keras_file_have_it(tmp_path):
    weights = []
    for remat in (False, True):
        model, trained = _model("houlsby", remat, num_blocks=1)
        model.compile("sgd", LOSS)
        features = tiny.batch(model.encoder_info)
        # Each row has dropout masks of its own.
        model.fit(features, LABELS, epochs=2, shuffle=False, verbose=0)
        weights.append(tiny.values(trained.values()))
    for plain, again in zip(*weights, strict=True):
        np.testing.assert_allclose(again, plain, atol=1e-6)
    model.save(tmp_path / "model.keras")
    assert keras.saving.load_model(tmp_path / "model.keras").remat
