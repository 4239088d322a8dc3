"""Tests that embeddings of an encoder in mixed precision are float32."""

import keras
import pytest
import tensorflow as tf

from tests import tiny
from tf_adapters import methods
from tf_adapters.models.adapter_model import AdapterModel

FAMILIES = ("bert", "roberta", "albert", "deberta", "mpnet", "modernbert")


def tables(backbone):
    kinds = keras.layers.Embedding
    return [x for x in backbone._flatten_layers() if isinstance(x, kinds)]


@pytest.mark.parametrize("family", FAMILIES)
def test_tables_are_read_in_float32_and_blocks_compute_in_half(family):
    encoder = tiny.encoder(family, dtype="mixed_bfloat16")
    found = {table.compute_dtype for table in tables(encoder.backbone)}
    assert found == {"float32"}
    model = AdapterModel(encoder, methods.HeadOnly())
    outputs = model(tiny.batch(encoder))
    assert outputs["sequence_output"].dtype == tf.bfloat16


def test_tables_of_an_encoder_in_half_precision_stay_as_they_are():
    encoder = tiny.encoder(dtype="bfloat16")
    found = {table.compute_dtype for table in tables(encoder.backbone)}
    assert found == {"bfloat16"}
