"""Comparisons for the tests of several families of encoders."""

import json

import keras
import numpy as np
import tensorflow as tf

from tests import tiny
from tests.fixtures import huggingface_folders
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.models.adapted_encoder import AdaptedEncoder


def check_longest(encoder, name, tolerance=2e-5):
    """Compares the last output for texts of maximum length with PyTorch's."""
    features, expected = huggingface_folders.expected(f"{name}_long")
    output = AdaptedEncoder(encoder)(features)["sequence_output"]
    tokens = features["padding_mask"] == 1
    difference = np.abs(np.asarray(output) - expected["hidden_states"][0])
    assert difference[tokens].max() < tolerance


def check_export(encoder, tokenizer, folder):
    """Compares a SavedModel that takes texts with the model in Keras."""
    head = heads.Classification(("no", "yes"))
    model = tf_adapters.adapt(encoder, methods.Pfeiffer(units=4), head)
    tiny.randomize(model.trained_variables().values())
    packer = tf_adapters.TextPacker(tokenizer, 16)
    path = tf_adapters.export_model(
        model, packer, folder / "films", ("one", "two")
    )
    texts = ["the film", "", "wet CAFE"], ["un film", "the water, 中", "x"]
    serve = tf.saved_model.load(str(path)).signatures["serving_default"]
    served = serve(one=tf.constant(texts[0]), two=tf.constant(texts[1]))
    expected = tf.nn.softmax(model(packer(*texts)))
    np.testing.assert_allclose(served["probabilities"], expected, atol=1e-5)
    assert np.ptp(expected[:, 0]) > 1e-3


def check_keras_file(encoder, tokenizer, path):
    """Compares a text model from a `.keras` file with the saved model."""
    model = tf_adapters.TextModel(
        encoder, tokenizer, labels=("no", "yes"), max_length=16
    )
    tiny.randomize(model.adapter_model.trained_variables().values())
    model.save(path)
    again = keras.saving.load_model(path)
    texts = ["the film", "", "wet CAFE, 中"]
    np.testing.assert_array_equal(
        again.predict(texts, verbose=0), model.predict(texts, verbose=0)
    )


def change_config(folder, **changes):
    """Sets keys of a folder's `config.json`."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
