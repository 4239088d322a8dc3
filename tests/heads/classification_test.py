"""Cross-entropy, predictions and decoding against NumPy."""

import json

import numpy as np
import pytest

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
        ({"labels": ("only",)}, "at least two labels.*only"),
        ({"labels": LABELS, "reads": "all"}, "Unknown reads `all`"),
    ],
)
def test_what_makes_no_classifier_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        heads.Classification(**options)
