"""Tests a SavedModel that splits long texts into windows."""

import numpy as np
import pytest
import tensorflow as tf

from tests.export import conftest
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.export import saved_model
from tf_adapters.interop import heads as interop_heads
from tf_adapters.models import bank_model

pytestmark = pytest.mark.integration

TEXTS = ["the film is good " * 12, "dull", "", "it was bad but not very " * 4]
HEADS = {
    "classes": heads.Classification(("a", "b"), windows=3, pooling="max"),
    "numbers": heads.Regression(windows=3, window_stride=5),
}


def _model(head):
    encoder, _ = tf_adapters.load_encoder(str(conftest.ENCODERS / "bert"))
    model = tf_adapters.adapt(encoder, methods.Pfeiffer(4), head)
    generator = np.random.default_rng(0)
    for variable in model.trained_variables().values():
        variable.assign(0.3 * generator.normal(size=variable.shape))
    return model


def _windows(packer, head, text):
    """Returns the texts' windows as token ids, computed one by one."""
    (tokens,) = packer.token_arrays([text])
    room = packer.max_length - 2
    step = head.window_stride or 3 * room // 4
    starts = [0]
    while starts[-1] + room < len(tokens) and len(starts) < head.windows:
        starts.append(starts[-1] + step)
    special = packer.special_tokens
    return [
        [special.start, *tokens[start : start + room], special.end]
        for start in starts
    ]


def _expected(model, packer, text):
    """Returns a text's pooled outputs, each window computed alone."""
    outputs = []
    for ids in _windows(packer, model.head, text):
        ids = np.array([ids], "int32")
        features = {
            "token_ids": ids,
            "padding_mask": np.ones_like(ids),
            "segment_ids": np.zeros_like(ids),
        }
        outputs.append(np.asarray(model(features))[0])
    pooled = np.max if model.head.pooling == "max" else np.mean
    return pooled(outputs, axis=0)


@pytest.mark.parametrize("kind", HEADS)
def test_texts_are_cut_and_pooled_in_the_graph(kind, tmp_path):
    model, packer = _model(HEADS[kind]), conftest.make_packer("bert")
    expected = np.array([_expected(model, packer, text) for text in TEXTS])
    assert [len(_windows(packer, model.head, t)) for t in TEXTS[:2]] == [3, 1]
    features = model.head.pack(packer, TEXTS)
    np.testing.assert_allclose(model(features), expected, atol=1e-5)
    path = saved_model.export_model(model, packer, tmp_path / "served")
    # The following must not use variables that are still in memory.
    for variable in model.variables:
        variable.assign(tf.zeros_like(variable))
    served = tf.saved_model.load(str(path)).signatures
    answers = served["serving_default"](tf.constant(TEXTS))
    tokens = served["token_ids"](
        **{name: tf.constant(value) for name, value in features.items()}
    )
    if kind == "numbers":
        wanted, name = expected[:, 0], "score"
    else:
        powers = np.exp(expected - expected.max(axis=1, keepdims=True))
        wanted, name = powers / powers.sum(1, keepdims=True), "probabilities"
        labels = [model.head.labels[i] for i in expected.argmax(axis=1)]
        assert [t.decode() for t in answers["label"].numpy()] == labels
    assert np.ptp(wanted, axis=0).min() > 1e-2
    np.testing.assert_allclose(answers[name], wanted, atol=1e-5)
    np.testing.assert_allclose(tokens[name], wanted, atol=1e-5)


def test_two_text_fields_are_refused(tmp_path):
    packer = conftest.make_packer("bert")
    with pytest.raises(UserError, match="two texts are read together"):
        saved_model.export_model(
            _model(HEADS["classes"]), packer, tmp_path / "m", ("one", "two")
        )


def test_a_bank_and_other_formats_refuse_it():
    model = _model(HEADS["classes"])
    with pytest.raises(AdapterError, match="pools the windows of a long text"):
        bank_model.load_bank([model], model.encoder_info)
    with pytest.raises(AdapterError, match="format cannot store"):
        interop_heads.form_of(heads.to_config(model.head))
