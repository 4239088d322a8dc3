"""Compares squared errors, predictions and decoding with NumPy."""

import json

import numpy as np
import pytest

from tf_adapters import heads
from tf_adapters.common.errors import UserError

HEAD = heads.Regression()


def test_the_loss_is_that_of_each_example_in_keras_too():
    outputs = np.array([[1.0], [2.0], [4.0]], "float32")
    targets = np.array([1.0, 1.0, 1.0], "float32")
    for given in (targets, targets[:, None]):
        np.testing.assert_allclose(HEAD.loss(given, outputs), [0.0, 1.0, 9.0])


OUTPUTS = np.array([[2.5], [0.0], [-1.25]], "float32")


def test_loss_is_the_squared_error_of_each_example():
    targets = np.array([2.0, 3.0, -1.25])
    expected = (OUTPUTS[:, 0] - targets) ** 2
    losses = HEAD.loss(targets, OUTPUTS)
    assert losses.shape == (3,) and expected[1] == 9
    np.testing.assert_allclose(losses, expected, rtol=1e-6)


def test_predictions_and_decoding_are_the_numbers():
    np.testing.assert_array_equal(HEAD.predictions(OUTPUTS), [2.5, 0, -1.25])
    decoded = json.loads(json.dumps(HEAD.decode(OUTPUTS)))
    assert decoded == [{"score": 2.5}, {"score": 0.0}, {"score": -1.25}]


def test_targets_are_numbers():
    targets = HEAD.targets([{"label": 2}, {"label": np.float64(0.5)}])
    np.testing.assert_array_equal(targets, [2, 0.5])
    assert targets.dtype == "float32"


@pytest.mark.parametrize("label", [None, float("nan"), float("inf"), "3"])
def test_a_row_without_a_number_is_named(label):
    rows = [{"label": 0.0}, {"label": label}]
    with pytest.raises(ValueError, match="Row 1 .*expected a finite number"):
        HEAD.targets(rows)


def test_there_is_one_output():
    layer = heads.Regression(reads="pooled_output").make_layer()
    layer.build((None, None, 4))
    assert layer.kernel.shape == (4, 1) and layer.reads == "pooled_output"


def test_config_round_trip_through_json():
    head = heads.Regression(reads="pooled_output", dropout_rate=0.25)
    config = json.loads(json.dumps(heads.to_config(head)))
    assert heads.from_config(config) == head != HEAD


def test_what_no_head_can_read_is_refused():
    with pytest.raises(ValueError, match="Unknown reads `all`"):
        heads.Regression(reads="all")


def test_a_hidden_layer_is_a_setting():
    layer = heads.Regression(hidden_layer="tanh").make_layer()
    layer.build((None, None, 8))
    assert {w.name: tuple(w.shape) for w in layer.weights} == {
        "kernel": (8, 1),
        "bias": (1,),
        "hidden_kernel": (8, 8),
        "hidden_bias": (8,),
    }
    assert (
        HEAD.is_linear and not heads.Regression(hidden_layer="tanh").is_linear
    )
    with pytest.raises(ValueError, match="hidden_layer"):
        heads.Regression(hidden_layer="swish")


def test_a_head_begins_at_a_number_or_the_mean_label():
    rows = [{"label": 50}, {"label": 70.5}]
    head = heads.Regression(initial_bias="mean").for_rows(rows)
    assert head.initial_bias == 60.25
    assert heads.Regression(initial_bias=3).for_rows(rows).initial_bias == 3
    layer = head.make_layer()
    layer.build({"sequence_output": (None, None, 4)})
    np.testing.assert_array_equal(layer.bias, [60.25])
    stored = heads.to_config(heads.Regression(initial_bias="mean"))
    assert heads.from_config(stored).make_layer().initial_bias == 0
    for wrong in ("median", None, float("nan")):
        with pytest.raises(UserError, match="must be a number or"):
            heads.Regression(initial_bias=wrong)
