"""An ONNX file answers as the model, without TensorFlow."""

import collections
import json
import shutil
import subprocess
import sys

from keras import ops
import numpy as np
import onnx
import onnxruntime
import pytest
import tensorflow as tf

from tests import tiny
from tests.export import conftest
from tests.export import head_models
from tests.methods import cases
import tf_adapters
from tf_adapters import heads
from tf_adapters import tasks
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.export import onnx_model
from tf_adapters.export import parity
from tf_adapters.export import token_outputs
from tf_adapters.export.check_texts import CheckTexts
from tf_adapters.models.adapter_model import AdapterModel

pytestmark = pytest.mark.integration

# Prints the answers of run.py, and what it imported.
_PROGRAM = """
import json, runpy, sys
for pair in (("the film is good", "it was bad"), ("Élan", "naïve")):
    sys.argv = ["run.py", *pair]
    runpy.run_path(FILE, run_name="__main__")
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


def _batch(model, length=9, seed=3):
    generator = np.random.default_rng(seed)
    features = {}
    for name, shape in model.feature_shapes().items():
        rows = (3, *[2] * (len(shape) - 2), length)
        limit = 30 if name == "token_ids" else 2
        features[name] = generator.integers(0, limit, rows, "int32")
    features["padding_mask"][..., :3] = 1
    return features


def _assert_equal(model, folder):
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    features = _batch(model)
    names = [value.name for value in session.get_outputs()]
    found = dict(zip(names, session.run(None, features), strict=True))
    expected = ops.convert_to_numpy(model(features, training=False))
    assert np.ptp(expected) > 0.1
    (name,) = set(names) & {"logits", "outputs"}
    np.testing.assert_allclose(found[name], expected, atol=1e-4)
    return found


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    model, _ = conftest.make_model(
        "bert", tf_adapters.methods.Houlsby(units=4), tasks.get("wnli")
    )
    packer = conftest.make_packer("bert")
    folder = tmp_path_factory.mktemp("onnx") / "wnli"
    return model, packer, tf_adapters.export_onnx(model, packer, folder)


def test_a_folder_of_something_else_is_kept(exported, tmp_path, monkeypatch):
    model, packer, _ = exported
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "resnet50.onnx").write_text("of someone else")
    with pytest.raises(UserError, match="holds no ONNX file"):
        tf_adapters.export_onnx(model, packer, tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="is the folder in which you work"):
        tf_adapters.export_onnx(model, packer, ".")


def test_a_packer_of_too_many_tokens_is_refused(exported, tmp_path):
    model, packer, _ = exported
    long = tf_adapters.TextPacker(packer.tokenizer, 5_000)
    with pytest.raises(UserError, match="max_length=5000 tokens, but the enc"):
        tf_adapters.export_onnx(model, long, tmp_path / "model")


def test_large_outputs_are_compared_by_their_digits():
    found = np.array([5000.25, 0.5])
    assert parity._difference(found, np.array([5000.0, 0.5])) < 1e-4
    assert parity._difference(found, np.array([5000.25, 0.5002])) > 1e-4


def test_the_file_answers_as_the_model_and_describes_it(exported):
    model, packer, folder = exported
    found = _assert_equal(model, folder)
    scaled = np.exp(found["logits"] / model.head.temperature)
    np.testing.assert_allclose(
        found["probabilities"],
        scaled / scaled.sum(axis=1, keepdims=True),
        atol=1e-5,
    )
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    facts = session.get_modelmeta().custom_metadata_map
    assert heads.from_config(json.loads(facts["head"])) == model.head
    assert json.loads(facts["labels"]) == list(model.head.labels)
    assert float(facts["temperature"]) == model.head.temperature
    assert facts["encoder_license"] == ""  # The folder has no model card.
    assert facts["encoder_fingerprint"] == model.encoder_info.fingerprint
    assert facts["max_length"] == str(packer.max_length)


def test_the_graph_has_the_forms_that_onnx_runtime_knows(exported):
    model, _, folder = exported
    nodes = list(onnx.load(folder / "model.onnx").graph.node)
    counts = collections.Counter(node.op_type for node in nodes)
    blocks = len(model.encoder.blocks)
    assert counts["LayerNormalization"] == 2 * blocks + 1
    assert counts["Erf"] == counts["Div"] == blocks  # GELU.
    assert not counts["GlobalAveragePool"] + counts["Reciprocal"]
    # Products of tokens have three dimensions.
    assert not any("Tensordot/Reshape" in node.name for node in nodes)


@pytest.mark.parametrize("precision", ["int8", "int8_static"])
def test_a_quantized_file_is_close_and_describes_itself(
    precision, exported, tmp_path, capsys
):
    model, packer, folder = exported
    shutil.copytree(folder, tmp_path / "new")
    source = tmp_path / "new" / "model.onnx"
    rows = [
        {"a": "the film is good", "b": "it was bad"},
        {"a": "", "b": "dull"},
    ]
    texts = CheckTexts(("a", "b"), rows * 20, rows * 20)
    onnx_model._quantize(source, model, packer, precision, texts)
    (path,) = (tmp_path / "new").glob("*.onnx")
    assert path.name == f"model_{precision}.onnx"
    session = onnxruntime.InferenceSession(str(path))
    facts = session.get_modelmeta().custom_metadata_map
    assert facts["precision"] == precision
    assert json.loads(facts["labels"]) == list(model.head.labels)
    quality = json.loads(facts["quality"])
    assert quality["rows"] == 40
    assert quality["equal_predictions"] == 1
    assert 0.5 < quality["explained_variance"] < 1
    assert f"The {precision} file gives" in capsys.readouterr().out
    content = onnx.load(path)
    kinds = {node.op_type for node in content.graph.node}
    assert "MatMulInteger" in kinds
    # Embeddings and kernels, with few exceptions, are stored as int8.
    big = [value for value in content.graph.initializer if len(value.dims) == 2]
    types = [value.data_type == onnx.TensorProto.INT8 for value in big]
    assert sum(types) > 0.8 * len(types)
    assert ("QuantizeLinear" in kinds) == (precision == "int8_static")


@pytest.mark.parametrize("name", ["token_ids", "padding_mask", "segment_ids"])
@pytest.mark.parametrize(
    "shape", [(1, 8), (3, 1), (3, 7), (8, 3), (0, 8), (3, 0), (0, 0)]
)
def test_inputs_of_different_shapes_are_refused(name, shape, exported):
    _, _, folder = exported
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    names = [value.name for value in session.get_inputs()]
    features = {key: np.ones((3, 8), "int32") for key in names}
    session.run(None, features)
    # ONNX Runtime's errors have no common class.
    with pytest.raises(Exception, match="Concat"):
        session.run(None, {**features, name: np.ones(shape, "int32")})


def test_positions_need_the_rows_of_the_tokens():
    ids = np.ones((3, 8), "int32")
    positions = np.array([[1, 2], [0, -1], [5, 7]], "int32")
    features = {"token_ids": ids, "padding_mask": ids}
    for right in (positions, positions[:, :0]):
        given = {**features, "masked_positions": right}
        checked = token_outputs.of_equal_shape(given)
        np.testing.assert_array_equal(checked["masked_positions"], right)
    for wrong in (positions[:1], positions[:2], positions[:0]):
        given = {**features, "masked_positions": wrong}
        with pytest.raises(tf.errors.InvalidArgumentError, match="Concat"):
            token_outputs.of_equal_shape(given)


def test_the_program_answers_without_tensorflow(exported):
    model, packer, folder = exported
    program = _PROGRAM.replace("FILE", repr(str(folder / "run.py")))
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    *lines, modules = result.stdout.splitlines()
    features = packer(["the film is good", "Élan"], ["it was bad", "naïve"])
    outputs = ops.convert_to_numpy(model(features, training=False))
    for line, expected in zip(lines, model.head.decode(outputs), strict=True):
        found = json.loads(line)
        assert found["label"] == expected["label"]
        for label, value in expected["probabilities"].items():
            assert found["probabilities"][label] == pytest.approx(
                value, abs=1e-5
            )
    assert not {"tensorflow", "keras", "tf_adapters"} & set(json.loads(modules))


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(set(tiny.FAMILIES) - {"bert"}))
def test_encoders(family, tmp_path, monkeypatch):
    monkeypatch.setattr(tiny, "VOCABULARY", 100)  # As the packer's.
    head = heads.Classification(labels=("a", "b"))
    model = tf_adapters.adapt(
        tiny.encoder(family), tf_adapters.methods.Pfeiffer(units=4), head
    )
    tiny.randomize(model.trained_variables().values())
    packer = conftest.make_packer("bert")
    folder = onnx_model.export_onnx(model, packer, tmp_path / "model")
    _assert_equal(model, folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", head_models.TASKS)
def test_heads(kind, tmp_path):
    method = tf_adapters.methods.LoRA(rank=2)
    model = head_models.make_model(method, head_models.TASKS[kind])
    packer = conftest.make_packer("bert")
    folder = onnx_model.export_onnx(model, packer, tmp_path / "model")
    _assert_equal(model, folder)
    assert (folder / "run.py").exists() == (kind not in ("span", "masked_lm"))


@pytest.mark.slow
@pytest.mark.parametrize("name", cases.names())
def test_methods(name, tmp_path):
    model, _ = conftest.make_model("bert", cases.EVERY[name], tasks.get("wnli"))
    packer = conftest.make_packer("bert")
    folder = onnx_model.export_onnx(model, packer, tmp_path / "model")
    _assert_equal(model, folder)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["int4", "int8"])
def test_a_quantized_encoder(mode, tmp_path):
    method = tf_adapters.methods.LoRA(rank=2)
    model, _ = conftest.make_model(
        "bert", method, tasks.get("wnli"), quantize=mode
    )
    packer = conftest.make_packer("bert")
    folder = onnx_model.export_onnx(model, packer, tmp_path / "model")
    _assert_equal(model, folder)


def test_a_file_that_differs_is_not_kept(exported, tmp_path, monkeypatch):
    model, packer, folder = exported
    earlier = (folder / "model.onnx").read_bytes()
    call = AdapterModel.call
    times = iter(range(100))

    def unlike(self, *args, **options):
        # The graph is traced first; what is compared with it comes after.
        return call(self, *args, **options) + 0.1 * next(times)

    monkeypatch.setattr(AdapterModel, "call", unlike)
    with pytest.raises(AdapterError, match="Nothing was written"):
        onnx_model.export_onnx(model, packer, folder)
    assert (folder / "model.onnx").read_bytes() == earlier
    assert sorted(path.name for path in folder.parent.iterdir()) == ["wnli"]


def test_a_model_without_a_head_is_refused(exported, tmp_path):
    model, packer, _ = exported
    bare = tf_adapters.adapt(tiny.encoder(), model.method)
    with pytest.raises(UserError, match="with a head"):
        onnx_model.export_onnx(bare, packer, tmp_path / "model")
