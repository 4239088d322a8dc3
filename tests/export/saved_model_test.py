"""Tests that a SavedModel answers like its model, without this library."""

from concurrent import futures
import json
import logging
from pathlib import Path
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.export import warmup
from tests.export.conftest import make_model
import tf_adapters
from tf_adapters import tasks
from tf_adapters.export import saved_model
from tf_adapters.export.signature_inputs import input_names

pytestmark = pytest.mark.integration

TEXTS = [
    "",
    "the film is not good",
    "This plot, it was VERY dull!",
    "Élan: naïve café — 電影 😀 \u00a0½ I\u0307",
    "the bad film and the good plot " * 20,
    "[SEP] </s> \x00 a\x00b",
]
OTHERS = ["it is", "", "é" * 50, "the plot " * 30, "bad", "but not very good"]

# Loads each SavedModel with only TensorFlow and its text operations.
_CLEAN_PROCESS = """
import json, sys
import tensorflow as tf
plain = set(sys.modules)
import tensorflow_text
folders = json.loads(sys.argv[1])
answers = {}
for name, (folder, inputs) in folders.items():
    model = tf.saved_model.load(folder)
    signature = model.signatures["serving_default"]
    outputs = signature(**{k: tf.constant(v) for k, v in inputs.items()})
    answers[name] = {
        key: [x.decode() for x in value.numpy()]
        if value.dtype == tf.string
        else value.numpy().tolist()
        for key, value in outputs.items()
    }
    answers[name]["dtypes"] = {k: v.dtype.name for k, v in outputs.items()}
new = {name.split(".")[0] for name in set(sys.modules) - plain}
print(json.dumps({"answers": answers, "new_modules": sorted(new),
                  "modules": sorted({m.split(".")[0] for m in sys.modules})}))
"""


@pytest.fixture(scope="module")
def clean_process(pair_classifier, pair_regression, byte_pair_classifier):
    pair = {"sentence1": TEXTS, "sentence2": OTHERS}
    folders = {
        "classification": (str(pair_classifier.folder), pair),
        "regression": (str(pair_regression.folder), pair),
        "byte_pair": (str(byte_pair_classifier.folder), {"sentence": TEXTS}),
    }
    result = subprocess.run(
        [sys.executable, "-c", _CLEAN_PROCESS, json.dumps(folders)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def _assert_same(received, expected, tolerance=1e-5):
    assert set(received) == set(expected)
    for key, value in expected.items():
        if key == "label":
            assert list(received[key]) == value
        else:
            # The texts must have different answers.
            assert np.ptp(value, axis=0).max() > 1e-2
            np.testing.assert_allclose(received[key], value, atol=tolerance)


@pytest.mark.slow
def test_texts_in_a_clean_process_are_answered_as_by_the_live_model(
    clean_process, pair_classifier, pair_regression, byte_pair_classifier
):
    answers = clean_process["answers"]
    dtypes = {name: answer.pop("dtypes") for name, answer in answers.items()}
    _assert_same(
        answers["classification"], pair_classifier.expected(TEXTS, OTHERS)
    )
    _assert_same(answers["regression"], pair_regression.expected(TEXTS, OTHERS))
    _assert_same(answers["byte_pair"], byte_pair_classifier.expected(TEXTS))
    assert dtypes["regression"] == {"score": "float32"}
    assert dtypes["byte_pair"] == {
        "label": "string",
        "label_id": "int32",
        "probabilities": "float32",
    }


@pytest.mark.slow
def test_loading_needs_tensorflow_and_its_text_operations_only(clean_process):
    modules = set(clean_process["modules"])
    assert "tensorflow_text" in modules  # The list is one of modules.
    assert not modules & {"tf_adapters", "keras_hub", "transformers"}
    # TensorFlow itself may import Keras; loading must not.
    assert "keras" not in clean_process["new_modules"]


def test_token_ids_of_any_length_are_answered_alike(pair_classifier):
    function = pair_classifier.loaded.signatures["token_ids"]
    for length in (None, 20):  # `None`: as long as the longest.
        features = pair_classifier.packer(TEXTS, OTHERS, sequence_length=length)
        received = {k: v.numpy() for k, v in function(**features).items()}
        received["label"] = [x.decode() for x in received["label"]]
        _assert_same(received, pair_classifier.expected(TEXTS, OTHERS))
    one = {key: value[1:2] for key, value in features.items()}
    np.testing.assert_allclose(
        function(**one)["probabilities"][0],
        received["probabilities"][1],
        atol=1e-5,
    )


def test_warmup_requests_are_answered_by_the_exported_model(pair_classifier):
    requests = warmup.read_warmup(pair_classifier.folder)
    assert {r.model_spec.signature_name for r in requests} == {
        "serving_default",
        "token_ids",
    }
    model = pair_classifier.loaded
    for request in requests:
        assert request.model_spec.name == "wnli"
        inputs = {
            name: tf.constant(tf.make_ndarray(tensor))
            for name, tensor in request.inputs.items()
        }
        function = model.signatures[request.model_spec.signature_name]
        probabilities = function(**inputs)["probabilities"].numpy()
        assert np.isfinite(probabilities).all()
        texts = [
            [text.decode() for text in tensor.numpy()]
            for name, tensor in sorted(inputs.items())
            if name.startswith("sentence")
        ]
        if texts:
            expected = pair_classifier.expected(*texts)["probabilities"]
            np.testing.assert_allclose(probabilities, expected, atol=1e-5)


def test_variables_are_saved_once_and_only_those_that_are_read(
    pair_classifier,
):
    # Keras's dropout layers have seeds, which no answer depends on.
    expected = sorted(
        tuple(variable.shape)
        for variable in pair_classifier.model.variables
        if "seed" not in variable.path
    )
    weights = pair_classifier.loaded.weights
    assert sorted(tuple(variable.shape) for variable in weights) == expected
    data = pair_classifier.folder / "variables/variables.data-00000-of-00001"
    num_weights = sum(int(np.prod(shape)) for shape in expected)
    # Besides the variables: the graph of objects, some 10 kB.
    assert 0 <= data.stat().st_size - 4 * num_weights < 50_000


def test_the_layout_is_that_of_tensorflow_serving(
    pair_classifier, pair_regression
):
    assert pair_classifier.folder.parts[-3:] == ("export", "wnli", "1")
    assert pair_regression.folder.parts[-2:] == ("similarity", "11")
    assert not (pair_regression.folder.parent / ".11.partial").exists()


def test_a_second_export_waits_until_the_first_has_its_version(
    monkeypatch, tmp_path
):
    first_writes, second_starts = threading.Event(), threading.Event()

    def save(module, path, functions, options):
        Path(path, "by").write_text(functions["by"])
        if functions["by"] == "first":
            first_writes.set()
            second_starts.wait(timeout=10)
            time.sleep(0.2)

    monkeypatch.setattr("tensorflow.saved_model.save", save)

    def write(by):
        if by == "second":
            first_writes.wait(timeout=10)
            second_starts.set()
        return saved_model.write_version(
            tmp_path, tf.Module(), {"by": by}, [], {}
        )

    with futures.ThreadPoolExecutor(2) as threads:
        versions = list(threads.map(write, ["first", "second"]))
    found = {path.name: (path / "by").read_text() for path in versions}
    assert found == {"1": "first", "2": "second"}


def test_a_description_is_next_to_the_model(pair_classifier):
    path = pair_classifier.folder / "assets.extra" / "model.json"
    description = json.loads(path.read_text())
    assert description["labels"] == ["not_entailment", "entailment"]
    assert description["signatures"]["serving_default"] == {
        "inputs": ["sentence1", "sentence2"],
        "outputs": ["label", "label_id", "probabilities"],
    }
    assert description["max_length"] == pair_classifier.packer.max_length


class _PythonTokenizer:
    """Imitates a tokenizer that transformers runs."""

    def __init__(self, tokenizer, graph_tokenizer):
        self.start_token_id = tokenizer.start_token_id
        self.end_token_id = tokenizer.end_token_id
        self.pad_token_id = tokenizer.pad_token_id
        self.separator_ids = [tokenizer.end_token_id]
        self.second_segment = 1
        self._tokenizer = tokenizer
        self._graph_tokenizer = graph_tokenizer

    def __call__(self, texts):
        return self._tokenizer(tf.constant(texts))

    def in_graph(self):
        return self._graph_tokenizer


def test_without_a_tokenizer_for_graphs_token_ids_are_taken(tmp_path, caplog):
    task = tasks.get("sst2")
    method = tf_adapters.methods.HeadOnly()
    model, packer = make_model("bert", method, task)
    tokenizer = _PythonTokenizer(packer.tokenizer, None)
    python_packer = tf_adapters.TextPacker(tokenizer, packer.max_length)
    with caplog.at_level(logging.WARNING):
        folder = saved_model.export_model(
            model, python_packer, tmp_path / "python", task.text_fields
        )
    assert "token ids only" in caplog.text
    functions = tf.saved_model.load(str(folder)).signatures
    features = packer(TEXTS)
    logits = model(features, training=False) / model.head.temperature
    expected = tf.nn.softmax(logits)
    for name in ("serving_default", "token_ids"):
        received = functions[name](**features)["probabilities"]
        np.testing.assert_allclose(received, expected, atol=1e-5)


def test_a_tokenizer_is_replaced_by_its_form_for_graphs(pair_classifier):
    tokenizer = pair_classifier.packer.tokenizer
    packer = tf_adapters.TextPacker(_PythonTokenizer(tokenizer, tokenizer), 16)
    graph_packer = saved_model.in_graph(packer)
    assert graph_packer.tokenizer is tokenizer
    assert graph_packer.special_tokens == packer.special_tokens
    assert graph_packer.max_length == 16


def test_a_model_without_a_head_is_refused(tmp_path, pair_classifier):
    model = tf_adapters.adapt(tiny.encoder(), tf_adapters.methods.HeadOnly())
    with pytest.raises(ValueError, match="Received: a model with head=None"):
        saved_model.export_model(
            model,
            pair_classifier.packer,
            tmp_path / "x",
            pair_classifier.task.text_fields,
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        (("question", "sentence"), ("question", "sentence")),
        (("my text",), ("text_1",)),
        (("1st", "second"), ("text_1", "text_2")),
        (("text", "Text"), ("text_1", "text_2")),
        (("self",), ("text_1",)),
        (("größe",), ("text_1",)),
        (("selfish",), ("selfish",)),
    ],
)
def test_inputs_are_named_as_fields_where_a_graph_allows(fields, names):
    assert input_names(fields) == names
