"""Tests text models on quantized encoders."""

import keras
import numpy as np
import pytest

from tests.text.models import CLASSES
from tests.text.models import FOLDER
from tests.text.models import TEXTS
from tests.text.models import text_model
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.text import loading


@pytest.fixture(scope="module")
def model():
    model = text_model("houlsby", quantize="int4", learning_rate=1e-2)
    model.fit(TEXTS, CLASSES, epochs=2, verbose=0)
    return model


def _assert_alike(one, other):
    np.testing.assert_allclose(
        one.predict(TEXTS, verbose=0),
        other.predict(TEXTS, verbose=0),
        rtol=0,
        atol=1e-5,
    )


def test_an_adapter_is_loaded_with_the_encoder_it_was_trained_on(
    model, tmp_path
):
    model.save_adapter(tmp_path / "films")
    again = loading.load(tmp_path / "films")
    assert again.encoder_info.quantization == "int4"
    _assert_alike(model, again)
    with pytest.raises(AdapterError, match="to int4, but this one is int8"):
        loading.load(tmp_path / "films", quantize="int8")


@pytest.mark.slow
def test_a_keras_file_holds_the_quantized_encoder(model, tmp_path):
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.encoder_info.quantization == "int4"
    _assert_alike(model, again)


def test_an_adapter_may_be_quantized_after_training(tmp_path):
    model = text_model("lora")
    model.save_adapter(tmp_path / "films")
    rounded = loading.load(tmp_path / "films", quantize="int8")
    assert rounded.encoder_info.quantization == "int8"
    change = np.abs(
        rounded.predict(TEXTS, verbose=0) - model.predict(TEXTS, verbose=0)
    )
    assert 0 < change.max() < 0.1
    with pytest.raises(UserError, match="`quantize='int8'` to `load_encoder`"):
        loading.load(FOLDER, model.encoder_info, quantize="int8")
    with pytest.raises(UserError, match="Unknown value of `quantize` `int7`"):
        text_model(quantize="int7")
