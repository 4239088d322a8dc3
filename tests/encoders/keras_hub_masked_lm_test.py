"""Tests the head for masked tokens in a KerasHub preset."""

import keras_hub
import numpy as np
import pytest
import requests

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.encoders import keras_hub_masked_lm
from tf_adapters.encoders.load import load_encoder
from tf_adapters.encoders.masked_lm_heads import load_masked_lm_head
from tf_adapters.models.adapter_model import adapt

SIZES = {
    "vocabulary_size": 30,
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
    "max_sequence_length": 12,
}
# From our variable to KerasHub's.
PATHS = {
    "kernel": "mlm_head/intermediate_dense/kernel",
    "bias": "mlm_head/intermediate_dense/bias",
    "gamma": "mlm_head/intermediate_layer_norm/gamma",
    "beta": "mlm_head/intermediate_layer_norm/beta",
    "output_bias": "mlm_head/output_bias",
}


@pytest.mark.parametrize("carries", [True, False])
def test_a_presets_own_head(carries, tmp_path):
    backbone = keras_hub.models.BertBackbone(**SIZES)
    task = keras_hub.models.BertMaskedLM(backbone, preprocessor=None)
    for weight in task.weights:
        weight.assign(np.random.default_rng(0).normal(size=weight.shape))
    (task if carries else backbone).save_to_preset(str(tmp_path))
    encoder, _ = load_encoder(str(tmp_path), with_tokenizer=False)
    head = heads.MaskedLM.for_encoder(encoder)
    model = adapt(encoder, methods.Pfeiffer(units=2), head)
    assert load_masked_lm_head(model, str(tmp_path)) == carries
    own = {v.path: v for v in task.get_layer("mlm_head").weights}
    for variable in model.head_layer.weights:
        same = np.array_equal(own[PATHS[variable.name]], variable)
        assert same == carries, variable.name


def test_without_a_network_it_is_not_known_whether_there_is_a_head(monkeypatch):
    def download(handle, path):
        raise requests.ConnectionError("no network")

    monkeypatch.setattr("kagglehub.model_download", download)
    with pytest.raises(UserError, match="^Whether the preset .*with a network"):
        keras_hub_masked_lm.read_preset_head("kaggle://a/bert/keras/tiny/1")
