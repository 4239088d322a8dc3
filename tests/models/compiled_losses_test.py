"""Tests the warning for Keras losses that expect probabilities."""

import functools
import warnings

import keras
import numpy as np
import pytest

from tests import tiny
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.models.adapter_model import adapt

LABELS = ("no", "yes")
HEADS = {
    "classification": heads.Classification(LABELS),
    "multilabel": heads.MultiLabel(LABELS),
    "tagging": heads.Tagging(LABELS),
    "choice": heads.Choice(),
    "span": heads.Span(),
    "regression": heads.Regression(),
    "none": None,
}
SPARSE = keras.losses.sparse_categorical_crossentropy


@functools.cache
def _model(name):
    encoder = tiny.encoder(num_blocks=1)
    return adapt(encoder, methods.Houlsby(units=2), HEADS[name])


def _warnings(model, *arguments, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.compile(*arguments, **options)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(
    ("loss", "named"),
    [
        ("sparse_categorical_crossentropy", "sparse_categorical_crossentropy"),
        ("SparseCategoricalCrossentropy", "SparseCategoricalCrossentropy"),
        ("bce", "'bce'"),
        (keras.losses.BinaryCrossentropy(), "binary_crossentropy"),
        (keras.losses.BinaryCrossentropy, "BinaryCrossentropy"),
        (keras.losses.CategoricalFocalCrossentropy(), "_focal_"),
        (SPARSE, "sparse_categorical_crossentropy"),
        ([SPARSE], "sparse_categorical_crossentropy"),
    ],
)
def test_a_loss_of_probabilities_on_logits_is_warned_of(loss, named):
    (message,) = _warnings(_model("classification"), loss=loss)
    assert named in message and "from_logits=True" in message
    assert _warnings(_model("classification"), "adam", loss) == [message]


@pytest.mark.parametrize("name", ["multilabel", "tagging", "choice", "span"])
def test_every_head_of_logits_warns(name):
    (message,) = _warnings(_model(name), loss="bce")
    assert f"`{name}`" in message


def _own_loss(targets, outputs):
    return SPARSE(targets, outputs, from_logits=True)


@pytest.mark.parametrize(
    "loss",
    [
        None,
        "mse",
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        functools.partial(SPARSE, from_logits=True),
        _own_loss,
        HEADS["classification"].loss,
    ],
)
def test_other_losses_are_not(loss):
    assert not _warnings(_model("classification"), loss=loss)


@pytest.mark.parametrize("name", ["regression", "none"])
def test_other_outputs_are_not(name):
    assert not _warnings(_model(name), loss="bce")


def test_a_compiled_model_is_loaded_compiled(tmp_path):
    model = _model("classification")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.25), loss)
    model.save(tmp_path / "model.keras")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        loaded = keras.models.load_model(tmp_path / "model.keras")
    assert float(loaded.optimizer.learning_rate) == 0.25
    assert loaded.optimizer.built
    arguments = tiny.batch(model.encoder_info), np.array([0, 1, 1])
    assert loaded.evaluate(*arguments, verbose=0) == pytest.approx(
        model.evaluate(*arguments, verbose=0), rel=1e-5
    )
