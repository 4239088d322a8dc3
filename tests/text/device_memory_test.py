"""Tests what a text model says if a device has no memory left."""

import keras
import pytest
import tensorflow as tf

from tests.text.models import NAMES
from tests.text.models import TEXTS
from tests.text.models import text_model
from tf_adapters.common.errors import ConfigError
from tf_adapters.explain import scores

DATASET = tf.data.Dataset.from_tensor_slices((TEXTS, NAMES))


def _fail(*args, **options):
    raise tf.errors.ResourceExhaustedError(
        None, None, "{{function_node f}} OOM when allocating tensor"
    )


@pytest.fixture(name="model", scope="module")
def _model():
    return text_model()


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.fit(TEXTS, NAMES, batch_size=4, verbose=0),
        lambda model: model.fit(DATASET, batch_size=4, verbose=0),
        lambda model: model.evaluate(TEXTS, NAMES, batch_size=4, verbose=0),
        lambda model: model.predict(TEXTS, batch_size=4, verbose=0),
        lambda model: model.predict(DATASET, batch_size=4, verbose=0),
        lambda model: model.answer(TEXTS, batch_size=4),
        lambda model: model.encode(TEXTS, batch_size=4),
    ],
    ids=["fit", "fit-dataset", "evaluate", "predict", "dataset"]
    + ["answer", "encode"],
)
def test_memory_that_runs_out_is_explained(model, use, monkeypatch):
    monkeypatch.setattr(keras.Model, "train_step", _fail)
    monkeypatch.setattr(keras.Model, "predict_step", _fail)
    with pytest.raises(ConfigError) as error:
        use(model)
    assert str(error.value) == (
        "The memory of the device does not suffice: OOM when allocating "
        "tensor. Lower `batch_size` (now 4; a batched `tf.data.Dataset` has "
        "batches of its own), or load the encoder with "
        'dtype="mixed_bfloat16" (now "float32").'
    )


def test_memory_that_runs_out_in_explanations_is_explained(model, monkeypatch):
    monkeypatch.setattr(scores, "outputs_of", _fail)
    with pytest.raises(ConfigError, match="tensor. Explain shorter texts, or"):
        model.explain(TEXTS)
