"""Compares pooled windows with NumPy, and with single windows."""

import dataclasses

import numpy as np
import pytest

from tests import tiny
from tests.heads import token_vectors
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.heads.windows import check_pools_windows
from tf_adapters.models.adapter_model import adapt

HEADS = {
    "classification": heads.Classification(("a", "b", "c"), windows=3),
    "multilabel": heads.MultiLabel(("a", "b", "c"), windows=3),
    "regression": heads.Regression(windows=3),
}
POOLED = {"mean": np.mean, "max": np.max}
# How many windows each text has.
COUNTS = (3, 1, 2)


def _features(encoder, tokens=7):
    flat = tiny.batch(encoder, size=9, tokens=tokens)
    features = {k: v.reshape(3, 3, tokens) for k, v in flat.items()}
    for row, count in enumerate(COUNTS):
        features["padding_mask"][row, count:] = 0
    return features


def _model(head):
    model = adapt(tiny.encoder(), methods.Houlsby(units=4), head)
    tiny.randomize(model.trained_variables().values())
    return model


@pytest.mark.parametrize("pooling", POOLED)
@pytest.mark.parametrize("kind", HEADS)
def test_a_text_has_the_mean_or_maximum_of_its_windows(kind, pooling):
    model = _model(dataclasses.replace(HEADS[kind], pooling=pooling))
    features = _features(model.encoder_info)
    outputs = np.asarray(model(features))
    for row, count in enumerate(COUNTS):
        # Each window is a text of its own here.
        alone = {k: v[row, :count] for k, v in features.items()}
        apart = np.asarray(model(alone))
        assert apart.shape[0] == count
        expected = POOLED[pooling](apart, axis=0)
        np.testing.assert_allclose(outputs[row], expected, atol=1e-5)
    assert np.ptp(outputs, axis=0).min() > 1e-2


@pytest.mark.parametrize("pooling", POOLED)
def test_windows_that_fill_up_change_nothing(pooling):
    model = _model(
        dataclasses.replace(HEADS["classification"], pooling=pooling)
    )
    features = _features(model.encoder_info)
    expected = np.asarray(model(features))
    filled = {
        name: np.pad(value, ((0, 0), (0, 4), (0, 2)))
        for name, value in features.items()
    }
    np.testing.assert_allclose(model(filled), expected, atol=1e-5)
    # Values at missing windows have no effect.
    filled["token_ids"][:, 3:] = 7
    np.testing.assert_allclose(model(filled), expected, atol=1e-5)


@pytest.mark.parametrize("pooling", POOLED)
def test_one_window_is_exactly_the_text(pooling):
    head = dataclasses.replace(HEADS["multilabel"], pooling=pooling)
    layer = token_vectors.layer(head, 8)
    vectors = np.random.default_rng(0).normal(size=(4, 8)).astype("float32")
    mask = np.ones((4, 5), "int32")
    outputs = {"first_token_output": vectors}
    expected = layer(outputs)
    for shaped in (mask, mask[:, None]):
        received = layer({**outputs, "padding_mask": shaped})
        np.testing.assert_array_equal(received, expected)


def test_training_follows_the_loss_of_the_pooled_outputs():
    head = dataclasses.replace(HEADS["classification"], dropout_rate=0.0)
    model = _model(head)
    features = _features(model.encoder_info)
    targets = np.array([0, 2, 1], "int32")
    model.compile("sgd", head.loss, run_eagerly=True)
    logits = np.asarray(model(features))
    log_probabilities = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    expected = -log_probabilities[np.arange(3), targets].mean()
    assert expected > 0.1
    history = model.fit(features, targets, batch_size=3, verbose=0)
    np.testing.assert_allclose(history.history["loss"], expected, rtol=1e-5)


def test_settings_are_stored_with_the_head():
    head = heads.Classification(
        ("a", "b"), windows=5, window_stride=4, pooling="max"
    )
    assert heads.from_config(heads.to_config(head)) == head
    assert head.signature == "windows" and len(head.feature_shape) == 3
    assert heads.Regression().signature == "text"
    assert len(heads.Regression().feature_shape) == 2
    # Stored heads of earlier versions lack the settings.
    config = {"name": "classification", "labels": ("a", "b")}
    assert heads.from_config(config).windows == 1


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"windows": 0}, "`windows` must be an integer of at least 1"),
        ({"windows": -2}, "`windows` must be an integer of at least 1"),
        ({"windows": 2.5}, "windows"),
        (
            {"window_stride": 0},
            "`window_stride` must be an integer of at least 1",
        ),
        ({"pooling": "median"}, "pooling"),
    ],
)
def test_wrong_settings_are_named(kind, settings, said):
    with pytest.raises(UserError, match=said):
        dataclasses.replace(HEADS[kind], **settings)


def test_pairs_are_refused():
    rows = [{"a": "one", "b": "two", "label": 0.5}]
    for use in (
        lambda head: head.encode(rows, ("a", "b"), None),
        lambda head: head.pack(None, ["one"], ["two"]),
    ):
        with pytest.raises(UserError, match="two texts are read together"):
            use(HEADS["regression"])


@pytest.mark.parametrize("name", sorted(heads.HEADS))
def test_heads_of_tokens_and_choices_are_refused(name):
    if name in HEADS:
        check_pools_windows(heads.HEADS[name], name)
        return
    with pytest.raises(UserError, match=f"Received: a head `{name}`"):
        check_pools_windows(heads.HEADS[name], name)
