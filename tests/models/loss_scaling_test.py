"""Tests Keras's `fit` with an encoder in float16."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.models import loss_scaling
from tf_adapters.models.adapter_model import adapt

HEAD = heads.Classification(("no", "yes"), dropout_rate=0.0)
LABELS = np.arange(8) % 2


@keras.saving.register_keras_serializable("tests")
def _loss(y, p):
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(y, p)


def _model(optimizer="adam", factor=None, dtype="mixed_float16", **options):
    """Returns a compiled model whose loss may be multiplied by a number."""
    encoder = tiny.encoder(dtype=dtype, num_blocks=1)
    model = adapt(encoder, methods.Pfeiffer(units=4), HEAD)
    loss = _loss if factor is None else lambda y, p: factor * _loss(y, p)
    model.compile(optimizer, loss, **options)
    return model


def _fit(model):
    """Returns how far the weight that moved least moved."""
    trained = model.trained_variables().values()
    before = tiny.values(trained)
    features = tiny.batch(model.encoder_info, size=8)
    model.fit(features, LABELS, batch_size=2, epochs=2, verbose=0)
    return min(
        np.abs(value - old).max()
        for value, old in zip(tiny.values(trained), before, strict=True)
    )


@pytest.mark.integration
@pytest.mark.parametrize("scales", [True, False])
def test_an_adapter_trains_with_a_scaled_loss_only(scales):
    model = _model(factor=1e-6, auto_scale_loss=scales)
    assert (_fit(model) > 0) == scales


@pytest.mark.integration
@pytest.mark.parametrize("scales", [True, False])
def test_a_file_keeps_whether_the_loss_is_scaled(scales, tmp_path):
    model = _model(auto_scale_loss=scales)
    _fit(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded.optimizer) is type(model.optimizer)
    assert int(loaded.optimizer.iterations) == int(model.optimizer.iterations)


@pytest.mark.integration
@pytest.mark.parametrize(
    "options",
    [
        {"steps_per_execution": 2},
        {"run_eagerly": True},
        pytest.param({"jit_compile": True}, marks=pytest.mark.slow),
    ],
    ids=["several_steps", "eager", "compiled"],
)
def test_skipped_steps_are_counted_and_said(options, caplog):
    model = _model(factor=3e3, **options)
    assert _fit(model) > 0
    skipped = int(model.optimizer.skipped_steps.numpy())
    assert 0 < skipped < 8
    assert model.optimizer.iterations.numpy() == 8 - skipped
    assert f"{skipped} steps changed nothing" in caplog.text
    caplog.clear()
    model.optimizer.dynamic_scale.assign(1.0)
    _fit(model)
    assert "changed nothing" not in caplog.text


@pytest.mark.integration
def test_all_replicas_skip_where_one_of_them_overflows():
    """Each has two of the four rows."""
    strategy = tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"],
        cross_device_ops=tf.distribute.ReductionToOneDevice(),
    )
    with strategy.scope():
        model = _model("sgd")
    trained = list(model.trained_variables().values())
    before = tiny.values(trained)
    features = tiny.batch(model.encoder_info, size=4)
    weights = np.array([1, 1, 1e7, 1e7])
    labels = LABELS[:4]
    model.fit(features, labels, sample_weight=weights, batch_size=4, verbose=0)
    assert model.optimizer.skipped_steps.numpy() == 1
    for value, old in zip(tiny.values(trained), before, strict=True):
        np.testing.assert_array_equal(value, old)


def test_an_optimizer_is_wrapped_once_and_in_float16_only():
    own = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD())
    assert _model(own).optimizer is own
    assert isinstance(_model().optimizer, loss_scaling.LossScaleOptimizer)
    for dtype in ("float32", "mixed_bfloat16"):
        assert isinstance(_model(dtype=dtype).optimizer, keras.optimizers.Adam)


def test_a_keras_file_keeps_the_scale(tmp_path):
    encoder = tiny.encoder(dtype="mixed_float16", num_blocks=1)
    model = adapt(encoder, methods.Pfeiffer(units=4), HEAD)
    model.compile("sgd", "mse")
    model.optimizer.build(model.trainable_variables)
    model.optimizer.dynamic_scale.assign(4.0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.optimizer.dynamic_scale.numpy() == 4.0
    assert isinstance(loaded.optimizer, loss_scaling.LossScaleOptimizer)
