"""Tests models that share an encoder if one of them trains part of it."""

import keras
import numpy as np
import pytest

from tests import tiny
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.encoders.encoder import encoder_fingerprint
from tf_adapters.models import multitask_model
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.bank_model import load_bank

HEAD = heads.Classification(("no", "yes"), dropout_rate=0.0)
LABELS = np.array([0, 1, 0])
CHANGED = "no longer has the weights it was loaded with"
GONE = "put the loaded ones back"
# Each trains another part of the encoder: norms, biases, everything.
TRAIN_ENCODER = (
    methods.Houlsby(units=2),
    methods.LayerNorm(),
    methods.BitFit(),
    methods.AdapterBias(),
    methods.Full(),
)


@pytest.fixture(name="encoder")
def _encoder():
    return tiny.encoder(num_blocks=1)


def _model(encoder, method, **options):
    model = adapt(encoder, method, HEAD, **options)
    model.compile(
        keras.optimizers.SGD(0.5),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        run_eagerly=True,  # One step each: a trace would take longer.
    )
    return model


def _fit(model):
    model.fit(tiny.batch(model.encoder_info), LABELS, verbose=0)


def _logits(model):
    return model.predict(tiny.batch(model.encoder_info), verbose=0)


@pytest.mark.parametrize("method", TRAIN_ENCODER, ids=methods.name_of)
def test_a_trained_encoder_is_refused_until_it_is_restored(encoder, method):
    loaded = encoder_fingerprint(encoder)
    _fit(_model(encoder, method))
    assert encoder_fingerprint(encoder) != loaded == encoder.fingerprint
    for other in (method, methods.Pfeiffer(units=2)):
        with pytest.raises(UserError, match=CHANGED) as error:
            _model(encoder, other)
    assert "load_encoder" in str(error.value)
    assert "encoder.restore()" in str(error.value)
    encoder.restore()
    assert encoder_fingerprint(encoder) == loaded
    _fit(_model(encoder, method))


def test_an_adapter_is_saved_against_the_loaded_encoder(encoder, tmp_path):
    model = _model(encoder, methods.Houlsby(units=2))
    _fit(model)
    saving.save_adapter(model, tmp_path / "first")
    encoder.restore()
    second = _model(encoder, methods.Houlsby(units=2))
    _fit(second)
    saving.save_adapter(second, tmp_path / "second")
    loaded = saving.load_adapter(
        tmp_path / "second", tiny.encoder(num_blocks=1)
    )
    np.testing.assert_allclose(_logits(loaded), _logits(second), atol=1e-6)


def test_other_models_of_the_encoder_stop_when_one_trains_it(encoder, tmp_path):
    adapter = methods.Pfeiffer(units=2)
    frozen = _model(encoder, adapter)
    bank = load_bank([_model(encoder, adapter), frozen], encoder)
    other, trains = (_model(encoder, methods.Houlsby(units=2)) for _ in "ab")
    before = _logits(frozen)
    _fit(trains)
    for use in (
        lambda: _logits(frozen),
        lambda: frozen(tiny.batch(encoder)),
        lambda: _fit(frozen),
        lambda: _logits(other),
        lambda: _fit(other),
        lambda: frozen.evaluate(tiny.batch(encoder), LABELS, verbose=0),
        lambda: saving.save_adapter(frozen, tmp_path / "adapter"),
        lambda: frozen.save(tmp_path / "model.keras"),
        lambda: bank.predict(
            {**tiny.batch(encoder), "adapter_ids": LABELS}, verbose=0
        ),
    ):
        with pytest.raises(UserError, match=CHANGED):
            use()
    assert list(tmp_path.iterdir()) == []
    _logits(trains)
    encoder.restore()
    np.testing.assert_array_equal(_logits(frozen), before)


def test_after_restore_the_model_that_trained_is_refused(encoder, tmp_path):
    model = _model(encoder, methods.Houlsby(units=2))
    _fit(model)
    encoder.restore()
    for use in (
        lambda: _logits(model),
        lambda: model(tiny.batch(encoder)),
        lambda: _fit(model),
        lambda: saving.save_adapter(model, tmp_path / "adapter"),
    ):
        with pytest.raises(UserError, match=GONE):
            use()


def test_models_that_train_nothing_of_the_encoder_share_it(encoder):
    one, two = (_model(encoder, methods.Pfeiffer(units=2)) for _ in "ab")
    before = _logits(two)
    _fit(one)
    np.testing.assert_array_equal(_logits(two), before)
    _model(encoder, methods.LoRA(rank=2))


def test_a_loop_of_ones_own_changes_the_encoder_too(encoder):
    model = _model(encoder, methods.LayerNorm())
    for variable in model.trained_variables().values():
        variable.assign(variable + 0.5)
    with pytest.raises(UserError, match=CHANGED):
        _model(encoder, methods.LayerNorm())
    _logits(model)
    encoder.restore()
    with pytest.raises(UserError, match=GONE):
        _logits(model)


def test_restoring_takes_back_a_loop_that_nobody_has_seen(encoder):
    model = _model(encoder, methods.LayerNorm())
    for variable in model.trained_variables().values():
        variable.assign(variable + 0.5)
    encoder.restore()
    with pytest.raises(UserError, match=GONE):
        _logits(model)


def test_loading_an_adapter_changes_the_encoder(encoder, tmp_path):
    model = _model(encoder, methods.Houlsby(units=2))
    _fit(model)
    saving.save_adapter(model, tmp_path / "adapter")
    encoder = tiny.encoder(num_blocks=1)
    frozen = _model(encoder, methods.Pfeiffer(units=2))
    waiting = _model(encoder, methods.Houlsby(units=2))
    loaded = saving.load_adapter(tmp_path / "adapter", encoder)
    for other in (waiting, frozen):
        with pytest.raises(UserError, match=CHANGED):
            _logits(other)
    np.testing.assert_allclose(_logits(loaded), _logits(model), atol=1e-6)


def test_merged_weights_are_those_of_one_model(encoder):
    lora, other = (_model(encoder, methods.LoRA(rank=2)) for _ in "ab")
    tiny.randomize(lora.trained_variables().values())
    before = _logits(other)
    lora.fold()
    with pytest.raises(UserError, match="are folded into encoder"):
        _logits(other)
    with pytest.raises(UserError, match="are folded into encoder"):
        _model(encoder, methods.HeadOnly())
    _logits(lora)
    lora.unfold()
    np.testing.assert_array_equal(_logits(other), before)


def test_tasks_that_train_together_change_the_encoder_together(encoder):
    method = methods.MultiTask(adapter=methods.Pfeiffer(units=2))
    models = {task: _model(encoder, method) for task in ("one", "two")}
    together = multitask_model.MultiTaskModel(models)
    _fit(models["one"])
    assert together.own_variables("two")
    _logits(models["two"])
    with pytest.raises(UserError, match=CHANGED):
        _model(encoder, method)


def test_a_model_from_a_keras_file_knows_no_loaded_weights(encoder, tmp_path):
    model = _model(encoder, methods.Houlsby(units=2))
    _fit(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(_logits(loaded), _logits(model), atol=1e-6)
    assert loaded.encoder_info.fingerprint == encoder.fingerprint
    with pytest.raises(UserError, match=".keras file"):
        loaded.encoder_info.restore()
