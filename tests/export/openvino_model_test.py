"""An OpenVINO file answers as the model."""

import json
import sys

from keras import ops
import numpy as np
import openvino
import pytest

from tests import tiny
from tests.export import conftest
from tests.export import head_models
from tests.methods import cases
import tf_adapters
from tf_adapters import heads
from tf_adapters import tasks
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import ConfigError
from tf_adapters.export import onnx_file
from tf_adapters.export import openvino_file

pytestmark = pytest.mark.integration


def _batch(model, length=9, seed=3):
    generator = np.random.default_rng(seed)
    features = {}
    for name, shape in model.feature_shapes().items():
        rows = (3, *[2] * (len(shape) - 2), length)
        limit = 30 if name == "token_ids" else 2
        features[name] = generator.integers(0, limit, rows, "int32")
    features["padding_mask"][..., :3] = 1
    # One text is padded on the left.
    features["padding_mask"][1, ..., 0] = 0
    return features


def _assert_equal(model, folder):
    run = openvino_file.runner(folder / "model.xml")
    for length in (9, 5):
        features = _batch(model, length)
        found = run(features)
        expected = ops.convert_to_numpy(model(features, training=False))
        assert np.ptp(expected) > 0.1
        (name,) = set(found) & {"logits", "outputs"}
        np.testing.assert_allclose(found[name], expected, atol=1e-4)
    return found


@pytest.fixture(scope="module")
def converted():
    """The ONNX files of the exports that used it: conversion is slow."""
    return []


@pytest.fixture(scope="module")
def exported(tmp_path_factory, converted):
    model, _ = conftest.make_model(
        "bert", tf_adapters.methods.Houlsby(units=4), tasks.get("wnli")
    )
    packer = conftest.make_packer("bert")
    folder = tmp_path_factory.mktemp("openvino") / "wnli"
    text_model = tf_adapters.TextModel.of_adapter(model, preprocessor=packer)
    convert = onnx_file.convert

    def kept(*arguments):
        converted.append(convert(*arguments))
        return converted[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx_file, "convert", kept)
        text_model.export(folder, format="openvino")
    return model, packer, folder


def test_the_file_answers_as_the_model_and_describes_it(exported):
    model, packer, folder = exported
    found = _assert_equal(model, folder)
    scaled = np.exp(found["logits"] / model.head.temperature)
    np.testing.assert_allclose(
        found["probabilities"],
        scaled / scaled.sum(axis=1, keepdims=True),
        atol=1e-5,
    )
    file = openvino.Core().read_model(folder / "model.xml")
    facts = file.get_rt_info("tf_adapters").astype(dict)
    facts = {name: file.get_rt_info(["tf_adapters", name]) for name in facts}
    head = heads.from_config(json.loads(facts["head"].astype(str)))
    assert head == model.head
    assert facts["max_length"].astype(str) == str(packer.max_length)


def test_a_missing_library_is_reported_before_the_work(
    exported, monkeypatch, tmp_path
):
    model, packer, _ = exported
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ConfigError, match=r"tf_adapters\[export\]"):
        tf_adapters.export_openvino(model, packer, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_file_that_differs_is_not_kept(exported, converted, monkeypatch):
    model, packer, folder = exported
    earlier = (folder / "model.bin").read_bytes()
    runner = openvino_file.runner

    def unlike(path):
        run = runner(path)
        return lambda inputs: {k: v + 0.1 for k, v in run(inputs).items()}

    monkeypatch.setattr(openvino_file, "runner", unlike)
    monkeypatch.setattr(onnx_file, "convert", lambda *_: converted[0])
    with pytest.raises(AdapterError, match="Nothing was written"):
        tf_adapters.export_openvino(model, packer, folder)
    assert (folder / "model.bin").read_bytes() == earlier
    assert sorted(path.name for path in folder.parent.iterdir()) == ["wnli"]


def test_weights_are_quantized(exported, tmp_path):
    model, _, folder = exported
    file = openvino.Core().read_model(folder / "model.xml")
    openvino_file.quantize(file)
    openvino_file.write(file, tmp_path / "model.xml")
    sizes = [(f / "model.bin").stat().st_size for f in (folder, tmp_path)]
    assert sizes[1] < 0.6 * sizes[0]
    features = _batch(model)
    found = openvino_file.runner(tmp_path / "model.xml")(features)["logits"]
    expected = ops.convert_to_numpy(model(features, training=False))
    error = np.mean((found - expected) ** 2) / np.var(expected)
    assert 1e-8 < error < 0.05


@pytest.mark.slow
def test_a_quantized_file_is_close_to_the_float_file(exported, tmp_path):
    model, packer, _ = exported
    text_model = tf_adapters.TextModel.of_adapter(model, preprocessor=packer)
    new = tmp_path / "wnli"
    text_model.export(new, format="openvino", precision="int8")
    assert sorted(path.name for path in new.iterdir()) == [
        "model_int8.bin",
        "model_int8.xml",
        "tokenizer.json",
    ]
    file = openvino.Core().read_model(new / "model_int8.xml")
    names = ("precision", "quality")
    precision, quality = (
        file.get_rt_info(["tf_adapters", name]).astype(str) for name in names
    )
    assert precision == "int8"
    assert 0.9 <= json.loads(quality)["equal_predictions"] <= 1
    assert 0.9 < json.loads(quality)["explained_variance"] < 1


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
    folder = tf_adapters.export_openvino(model, packer, tmp_path / "model")
    _assert_equal(model, folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", head_models.TASKS)
def test_heads(kind, tmp_path):
    method = tf_adapters.methods.LoRA(rank=2)
    model = head_models.make_model(method, head_models.TASKS[kind])
    packer = conftest.make_packer("bert")
    folder = tf_adapters.export_openvino(model, packer, tmp_path / "model")
    _assert_equal(model, folder)


# PEFT's prompts come before Keras's layer of positions, which broadcasts.
REFUSED = "prompt_tuning_peft"


@pytest.mark.slow
def test_a_method_that_it_cannot_read_is_refused(tmp_path):
    model, _ = conftest.make_model(
        "bert", cases.EVERY[REFUSED], tasks.get("wnli")
    )
    packer = conftest.make_packer("bert")
    with pytest.raises(AdapterError, match="operation Expand.* is not conv"):
        tf_adapters.export_openvino(model, packer, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in cases.ONE_EACH if n != REFUSED])
def test_methods(name, tmp_path):
    model, _ = conftest.make_model("bert", cases.EVERY[name], tasks.get("wnli"))
    packer = conftest.make_packer("bert")
    folder = tf_adapters.export_openvino(model, packer, tmp_path / "model")
    _assert_equal(model, folder)
