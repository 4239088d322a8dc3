"""Compares cross-entropy, predictions and decoding with NumPy."""

import json

import keras
import numpy as np
import pytest
from sklearn.utils import class_weight

from tests import tiny
from tf_adapters import heads

LABELS = ("no", "yes", "maybe")
HEAD = heads.Classification(LABELS)
LOGITS = np.array(
    [[2.0, 0.0, -1.0], [0.0, 3.0, 0.5], [-1.0, 0.2, 0.3], [500, -500, 0]],
    "float32",
)


def _probabilities(logits):
    logits = logits.astype("float64")
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def test_loss_is_the_cross_entropy_of_each_example():
    targets = np.array([0, 2, 1, 0])
    expected = -np.log(_probabilities(LOGITS)[range(4), targets])
    losses = HEAD.loss(targets, LOGITS)
    assert losses.shape == (4,) and expected[1] > 2
    np.testing.assert_allclose(losses, expected, rtol=1e-5, atol=1e-6)


def test_loss_of_an_impossible_class_is_large_and_finite():
    np.testing.assert_allclose(HEAD.loss([1], LOGITS[3:]), [1000], rtol=1e-5)


def test_predictions_are_the_ids_of_the_most_probable_classes():
    np.testing.assert_array_equal(HEAD.predictions(LOGITS), [0, 1, 2, 0])


def test_decoding_names_the_class_and_all_probabilities():
    decoded = HEAD.decode(LOGITS)
    assert [row["label"] for row in decoded] == ["no", "yes", "maybe", "no"]
    for row, expected in zip(decoded, _probabilities(LOGITS), strict=True):
        assert list(row["probabilities"]) == list(LABELS)
        np.testing.assert_allclose(
            list(row["probabilities"].values()), expected, atol=1e-6
        )
    json.dumps(decoded)


def test_targets_are_class_ids():
    targets = HEAD.targets([{"label": 2}, {"label": np.int64(0)}])
    np.testing.assert_array_equal(targets, [2, 0])
    assert targets.dtype == "int32"


@pytest.mark.parametrize("label", [None, -1, 3, "yes", 1.5])
def test_a_row_without_a_known_label_is_named(label):
    rows = [{"label": 0}, {"label": label}]
    with pytest.raises(ValueError, match="Row 1 .*from 0 to 2: no, yes, maybe"):
        HEAD.targets(rows)


def test_there_is_an_output_for_each_label():
    layer = HEAD.make_layer()
    layer.build((None, None, 4))
    assert layer.kernel.shape == (4, 3)
    assert layer.reads == "first_token" and layer.dropout_rate == 0.1


def test_config_round_trip_through_json():
    head = heads.Classification(
        LABELS, reads="pooled_output", dropout_rate=0.25
    )
    config = json.loads(json.dumps(heads.to_config(head)))
    assert heads.from_config(config) == head != HEAD


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": ("only",)}, "two classes or more.*only"),
        ({"labels": LABELS, "reads": "all"}, "Unknown reads `all`"),
    ],
)
def test_what_makes_no_classifier_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        heads.Classification(**options)


def test_class_weights_multiply_the_losses_of_their_classes():
    weighted = heads.Classification(LABELS, class_weights=(1.0, 2.5, 0.5))
    logits = np.random.default_rng(0).normal(size=(3, 3)).astype("float32")
    targets = np.array([0, 1, 2])
    expected = np.asarray(heads.Classification(LABELS).loss(targets, logits))
    np.testing.assert_allclose(
        weighted.loss(targets, logits), expected * [1, 2.5, 0.5], rtol=1e-6
    )


def test_weighted_losses_of_targets_in_a_column_are_the_same():
    weighted = heads.Classification(LABELS, class_weights=(1.0, 2.5, 0.5))
    targets = np.array([0, 2, 1, 0])
    expected = weighted.loss(targets, LOGITS)
    found = weighted.loss(targets[:, None], LOGITS)
    assert found.shape == (4,)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_balanced_weights_without_rows_are_refused():
    balanced = heads.Classification(LABELS, class_weights="balanced")
    with pytest.raises(ValueError, match=r"use the head that `head.for_rows"):
        balanced.loss(np.array([0, 2, 1, 0]), LOGITS)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_class_weights_of_numpy_are_written_as_json(dtype):
    weights = np.array([1, 2, 4], dtype)
    head = heads.Classification(LABELS, class_weights=weights)
    assert head == heads.Classification(LABELS, class_weights=(1, 2, 4))
    config = json.loads(json.dumps(heads.to_config(head)))
    assert heads.from_config(config) == head


@pytest.mark.parametrize("class_weights", [(), (1.0, 2.5, 0.5)])
def test_smoothed_losses_are_keras_s(class_weights):
    head = heads.Classification(
        LABELS, class_weights=class_weights, label_smoothing=0.2
    )
    logits = np.random.default_rng(0).normal(0, 3, (6, 3)).astype("float32")
    targets = np.arange(6) % 3
    theirs = keras.losses.CategoricalCrossentropy(
        from_logits=True, label_smoothing=0.2, reduction="none"
    )(np.eye(3)[targets], logits)
    weights = np.array(class_weights or [1, 1, 1])[targets]
    np.testing.assert_allclose(
        head.loss(targets, logits), weights * theirs, rtol=1e-6, atol=1e-6
    )
    assert heads.from_config(heads.to_config(head)) == head


@pytest.mark.parametrize("share", [-0.1, 1.0, 10, float("nan"), "a little"])
def test_smoothing_that_is_no_share_is_refused(share):
    with pytest.raises(ValueError, match="`label_smoothing`"):
        heads.Classification(LABELS, label_smoothing=share)


def test_balanced_weights_are_scikit_learns():
    labels = [0, 0, 0, 1, 2, 2]
    head = heads.Classification(LABELS, class_weights="balanced")
    rows = [{"label": label} for label in labels]
    expected = class_weight.compute_class_weight(
        "balanced", classes=np.arange(3), y=labels
    )
    np.testing.assert_allclose(head.for_rows(rows).class_weights, expected)
    with pytest.raises(ValueError, match="none of "):
        head.for_rows(rows[:4])


@pytest.mark.parametrize(
    "weights",
    ["even", None, 2.0, (1.0, 2.0), (1.0, 0.0, 2.0), (1.0, 10**400, 2.0)],
)
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(ValueError, match="class_weights"):
        heads.Classification(LABELS, class_weights=weights)


def test_a_hidden_layer_is_dense_and_its_activation():
    head = heads.Classification(LABELS, hidden_layer="tanh", dropout_rate=0.0)
    layer = head.make_layer()
    layer.build((None, None, 4))
    tiny.randomize(layer.weights, scale=1.0)
    kernel, bias, hidden_kernel, hidden_bias = tiny.values(layer.weights)
    x = np.random.default_rng(1).normal(size=(2, 4)).astype("float32")
    expected = np.tanh(x @ hidden_kernel + hidden_bias) @ kernel + bias
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(
        layer({"first_token_output": x}), expected, rtol=1e-5, atol=1e-5
    )
