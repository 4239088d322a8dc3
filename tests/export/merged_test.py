"""Tests that exports compute with folded weights."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.export import conftest
from tf_adapters import methods
from tf_adapters import tasks
from tf_adapters.export import saved_model

pytestmark = pytest.mark.integration

TASK = tasks.get("wnli")


def _export(method, folder):
    """Returns the exported graph's operations, its weights, and the model."""
    model, packer = conftest.make_model("bert", method, TASK)
    features = packer(conftest.SENTENCES, conftest.SENTENCES)
    before = model(features).numpy()
    path = saved_model.export_model(model, packer, folder, TASK.text_fields)
    # The export does not change the model.
    np.testing.assert_allclose(model(features), before, atol=1e-5)
    assert model.trained_variables()
    loaded = tf.saved_model.load(str(path))
    operations = loaded.signatures["token_ids"].graph.get_operations()
    return collections.Counter(op.type for op in operations), loaded.weights


@pytest.fixture(scope="module")
def of_the_encoder_alone(tmp_path_factory):
    return _export(methods.HeadOnly(), tmp_path_factory.mktemp("m") / "plain")


@pytest.mark.parametrize(
    "method",
    [
        methods.LoRA(rank=4),
        pytest.param(methods.Full(mixout=0.5), marks=pytest.mark.slow),
    ],
)
def test_the_graph_is_the_encoders(method, of_the_encoder_alone, tmp_path):
    operations, weights = _export(method, tmp_path / "model")
    expected_operations, expected_weights = of_the_encoder_alone
    assert operations == expected_operations
    assert len(weights) == len(expected_weights)
