"""Tests that a SavedModel predicts masked tokens like its model."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tests.export import conftest
from tests.export import warmup
from tests.methods import cases
import tf_adapters
from tf_adapters import tasks
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.data.examples import IGNORED
from tf_adapters.export import saved_model
from tf_adapters.runs import pretraining_task

TEXTS = [
    "the {} is good",
    "no mask",
    "",
    "{}{} , it was {}",
    "un{}ed \x00É\u00a0{} [SEP]",
    "the film " * 20 + "{}",  # Beyond the longest input.
]
TASK = pretraining_task.pretraining_task_of(tasks.get("sst2"))


def _model(encoder, method):
    """Returns a model with large random weights, and its packer."""
    packer = conftest.make_packer(encoder)
    encoder, _ = tf_adapters.load_encoder(str(conftest.ENCODERS / encoder))
    head = tf_adapters.heads.MaskedLM.for_encoder(encoder)
    model = tf_adapters.adapt(encoder, method, head)
    generator = np.random.default_rng(0)
    for variable in model.trained_variables().values():
        noise = 0.3 * generator.normal(size=variable.shape)
        variable.assign(noise + (variable.name == "gamma"))
    return model, packer


def _texts(packer):
    return [text.replace("{}", packer.mask) for text in TEXTS]


def _expected(model, packer, rows, fields):
    """Returns the expected predictions for each row's masks."""
    encoded = model.head.encode(rows, fields, packer, labeled=False)
    examples = pipeline.to_tensors(encoded)
    answers = []
    for place in range(len(rows)):
        batch = batch_plan.Batch(np.array([place]), examples.lengths[place])
        (features,) = pipeline.dataset(examples, [batch])
        features = dict(features)
        outputs = model(features, training=False).numpy()[0]
        positions = features["masked_positions"].numpy()[0]
        there = positions != IGNORED
        answers.append((positions[there], outputs[there]))
    return encoded.source, answers


def _assert_same(received, expected):
    """Compares a signature's answer with `_expected`'s."""
    received = {key: value.numpy() for key, value in received.items()}
    for row, (positions, outputs) in enumerate(expected):
        count = len(positions)
        of_row = {key: value[row] for key, value in received.items()}
        assert of_row["positions"][:count].tolist() == positions.tolist()
        assert (of_row["positions"][count:] == IGNORED).all()
        np.testing.assert_allclose(
            of_row["probabilities"][:count], outputs[..., 0], atol=1e-5
        )
        np.testing.assert_array_equal(
            of_row["token_id"][:count], outputs[..., 1]
        )
        assert not of_row["probabilities"][count:].any()
        assert (of_row["token_id"][count:] == IGNORED).all()
    assert received["positions"].shape[1] == max(len(p) for p, _ in expected)


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["bert", "roberta"])
def test_texts_are_answered_as_by_the_live_model(encoder, tmp_path):
    model, packer = _model(encoder, tf_adapters.methods.Houlsby(units=4))
    texts = _texts(packer)
    source, expected = _expected(
        model, packer, [{"sentence": text} for text in texts], ("sentence",)
    )
    assert [len(positions) for positions, _ in expected] == [1, 0, 0, 3, 2, 0]
    folder = saved_model.export_model(
        model, packer, tmp_path / "model", TASK.text_fields
    )
    for variable in model.variables:
        variable.assign(tf.zeros_like(variable))
    exported = tf.saved_model.load(str(folder))
    serve = exported.signatures["serving_default"]
    received = serve(sentence=tf.constant(texts))
    tokens = received.pop("tokens").numpy()
    _assert_same(received, expected)
    for row, (_, outputs) in enumerate(expected):
        strings = [[token.decode() for token in mask] for mask in tokens[row]]
        known = [[source.texts[int(i)] for i in m] for m in outputs[..., 1]]
        assert strings[: len(known)] == known
        assert not any(map(any, strings[len(known) :]))
    features = packer.reading_masks()(texts, sequence_length=20)
    _assert_same(exported.signatures["token_ids"](**features), expected)
    none = serve(sentence=tf.constant(["no mask", "none"]))
    assert none["positions"].shape == (2, 0)
    assert none["tokens"].shape == (2, 0, 5)
    _check_files(exported, folder)


def _check_files(exported, folder):
    """Checks the answers to warm-up requests, and the description."""
    for request in warmup.read_warmup(folder):
        inputs = {
            name: tf.constant(tf.make_ndarray(tensor))
            for name, tensor in request.inputs.items()
        }
        answer = exported.signatures[request.model_spec.signature_name](
            **inputs
        )
        assert answer["positions"].shape[1] > 0
    description = json.loads((folder / "assets.extra/model.json").read_text())
    assert description["signatures"]["serving_default"] == {
        "inputs": ["sentence"],
        "outputs": ["positions", "probabilities", "token_id", "tokens"],
    }


@pytest.mark.slow
def test_pairs_are_answered_as_by_the_live_model(tmp_path):
    model, packer = _model("bert", tf_adapters.methods.Pfeiffer(units=4))
    task = pretraining_task.pretraining_task_of(tasks.get("wnli"))
    texts = _texts(packer)
    first, second = task.text_fields
    rows = [
        {first: a, second: b}
        for a, b in zip(texts, reversed(texts), strict=True)
    ]
    _, expected = _expected(model, packer, rows, task.text_fields)
    folder = saved_model.export_model(
        model, packer, tmp_path / "model", task.text_fields
    )
    serve = tf.saved_model.load(str(folder)).signatures["serving_default"]
    received = serve(
        **{name: tf.constant([row[name] for row in rows]) for name in rows[0]}
    )
    received.pop("tokens")
    _assert_same(received, expected)
    assert max(len(positions) for positions, _ in expected) == 3


class _PythonTokenizer:
    """Imitates a tokenizer that cannot run in a graph."""

    def __init__(self):
        tokenizer = conftest.make_packer("bert").tokenizer
        for name in ("start", "end", "pad", "mask"):
            key = f"{name}_token_id"
            setattr(self, key, getattr(tokenizer, key))
        self.separator_ids = [tokenizer.end_token_id]
        self.second_segment = 1
        self.get_vocabulary = tokenizer.get_vocabulary
        self._tokenizer = tokenizer

    def __call__(self, texts):
        return self._tokenizer(tf.constant(texts))

    def in_graph(self):
        return None


@pytest.mark.slow
def test_token_ids_are_answered_where_the_tokenizer_runs_in_no_graph(tmp_path):
    """Uses mixout, which also affects the weights of the head."""
    model, _ = _model("bert", cases.EVERY["full_mixout"])
    packer = tf_adapters.TextPacker(_PythonTokenizer(), conftest.MAX_LENGTH)
    texts = _texts(packer)
    rows = [{"sentence": text} for text in texts]
    _, expected = _expected(model, packer, rows, ("sentence",))
    folder = saved_model.export_model(
        model, packer, tmp_path / "model", TASK.text_fields
    )
    for variable in model.variables:
        variable.assign(tf.zeros_like(variable))
    exported = tf.saved_model.load(str(folder))
    features = packer.reading_masks()(texts)
    for signature in ("token_ids", "serving_default"):
        _assert_same(exported.signatures[signature](**features), expected)
