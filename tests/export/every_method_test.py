"""Tests that exports equal models, for every method.

Exports are without a tokenizer, which is the same for all methods and tested in
`saved_model_test.py`. Graphs are tested in `invariants_test.py`.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.export import conftest
from tests.methods import cases
import tf_adapters
from tf_adapters import tasks
from tf_adapters.export import saved_model

pytestmark = pytest.mark.integration

TASK = tasks.get("wnli")
OTHERS = ["it is", "the plot", "", "a very dull film", "good"]


class _PythonTokenizer:
    """The tokenizer of the tests' encoder, as if it could run in no graph."""

    def __init__(self):
        tokenizer = conftest.make_packer("bert").tokenizer
        for name in ("start", "end", "pad"):
            key = f"{name}_token_id"
            setattr(self, key, getattr(tokenizer, key))
        self.separator_ids = [tokenizer.end_token_id]
        self.second_segment = 1
        self._tokenizer = tokenizer

    def __call__(self, texts):
        return self._tokenizer(tf.constant(texts))

    def in_graph(self):
        return None


@pytest.fixture(scope="module")
def packer():
    return tf_adapters.TextPacker(_PythonTokenizer(), conftest.MAX_LENGTH)


@pytest.mark.parametrize("name", cases.names())
def test_the_export_answers_as_the_live_model(name, packer, tmp_path):
    method = cases.EVERY[name]
    model, _ = conftest.make_model("bert", method, TASK)
    features = packer(conftest.SENTENCES, OTHERS)
    eager = model(features, training=False).numpy()
    assert np.ptp(eager, axis=0).max() > 0.1  # Texts make a difference.
    folder = saved_model.export_model(
        model, packer, tmp_path / "model", TASK.text_fields
    )
    # What follows must not come from variables that both share.
    for variable in model.variables:
        variable.assign(tf.zeros_like(variable))
    exported = tf.saved_model.load(str(folder))
    logits = eager / model.head.temperature
    probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    received = exported.signatures["token_ids"](**features)
    np.testing.assert_allclose(
        received["probabilities"], probabilities, atol=1e-5
    )
    np.testing.assert_array_equal(received["label_id"], eager.argmax(axis=1))
