"""Tests that an encoder's ONNX file answers like the adapters it is fed."""

import functools
import json
import runpy
import shutil
import subprocess
import sys

from keras import ops
import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import load_file

from tests import tiny
from tests.export import conftest
from tests.methods import cases
from tests.stored import change_config
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters import tasks
from tf_adapters.common.errors import AdapterError
from tf_adapters.export import onnx_encoder

pytestmark = pytest.mark.integration

# Three classes, two classes, a number. The first is the widest.
ADAPTERS = {"sick": 6, "sst2": 4, "stsb": 5}
# Their stored weights are not the ones that the model computes with, or they
# read other adapters.
REFUSED = (
    *("full_mixout", "houlsby_mixout", "diff_pruning"),
    *("adapter_bias_l0_shared", "fusion", "fusion_subset"),
)
TEXTS = ("the film is good", "it was bad and dull")

# Prints the answers of run.py, and what it imported.
_PROGRAM = """
import json, runpy, sys
for adapter, *texts in REQUESTS:
    sys.argv = ["run.py", f"--adapter={adapter}", *texts]
    runpy.run_path(FILE, run_name="__main__")
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


@pytest.fixture(scope="module")
def adapters(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("adapters"), {}
    for task, units in ADAPTERS.items():
        method = methods.Houlsby(units=units)
        model, packer = conftest.make_model("bert", method, tasks.get(task))
        tf_adapters.save_adapter(model, folder / task)
        made[task] = folder / task, model, packer
    return made


@pytest.fixture(scope="module")
def exported(adapters, tmp_path_factory):
    _, model, packer = adapters["sick"]
    folder = tmp_path_factory.mktemp("onnx") / "encoder"
    return onnx_encoder.export_onnx_encoder(model, packer, folder)


def _session(folder):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(folder / "encoder.onnx"), options)


def _weights(folder, session):
    """Returns an adapter's tensors, as wide as the file's."""
    shapes = {v.name: v.shape for v in session.get_overridable_initializers()}
    tensors = load_file(folder / "adapter.safetensors")
    assert tensors.keys() == shapes.keys()
    for name, value in tensors.items():
        sizes = zip(shapes[name], value.shape, strict=True)
        missing = [0 if isinstance(s, str) else s - has for s, has in sizes]
        tensors[name] = np.pad(value, [(0, number) for number in missing])
    return tensors


def _expected(model, features):
    outputs = ops.convert_to_numpy(model(features, training=False))
    assert np.ptp(outputs) > 0.1
    return outputs


def _features(model):
    generator = np.random.default_rng(3)
    features = {
        name: generator.integers(0, 30 if name == "token_ids" else 2, (4, 9))
        for name in model.feature_shapes()
    }
    features["padding_mask"][:, :3] = 1
    return {k: v.astype("int32") for k, v in features.items()}


@pytest.mark.parametrize("task", ADAPTERS)
def test_the_file_answers_with_each_adapter(task, adapters, exported):
    folder, model, _ = adapters[task]
    session, features = _session(exported), _features(model)
    (found,) = session.run(None, features | _weights(folder, session))
    np.testing.assert_allclose(found, _expected(model, features), atol=1e-4)


def test_without_tensors_it_answers_as_the_model_it_comes_from(
    adapters, exported
):
    _, model, _ = adapters["sick"]
    features = _features(model)
    (found,) = _session(exported).run(None, features)
    np.testing.assert_allclose(found, _expected(model, features), atol=1e-4)


def test_onnx_runtime_reads_them_from_adapter_files(
    adapters, exported, tmp_path
):
    folder, model, _ = adapters["sst2"]
    session, features = _session(exported), _features(model)
    # The values do not copy the arrays, so both must live until the export.
    tensors = _weights(folder, session)
    values = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy(value)
        for name, value in tensors.items()
    }
    file = onnxruntime.AdapterFormat()
    file.set_adapter_version(1)
    file.set_model_version(1)
    file.set_parameters(values)
    file.export_adapter(str(tmp_path / "sst2.onnx_adapter"))
    adapter = onnxruntime.LoraAdapter()
    adapter.Load(str(tmp_path / "sst2.onnx_adapter"))
    options = onnxruntime.RunOptions()
    options.add_active_adapter(adapter)
    (found,) = session.run(None, features, options)
    np.testing.assert_allclose(found, _expected(model, features), atol=1e-4)


def test_the_program_answers_without_tensorflow(adapters, exported):
    program = _PROGRAM.replace("FILE", repr(str(exported / "run.py")))
    requests = [
        (str(adapters["sst2"][0]), TEXTS[0]),
        (str(adapters["stsb"][0]), *TEXTS),
    ]
    result = subprocess.run(
        [sys.executable, "-c", program.replace("REQUESTS", repr(requests))],
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    sst2, stsb, modules = map(json.loads, result.stdout.splitlines())
    assert not {"tensorflow", "keras", "tf_adapters"} & set(modules)
    _, model, packer = adapters["sst2"]
    (expected,) = model.head.decode(_numpy(model, packer([TEXTS[0]])))
    assert sst2["label"] == expected["label"]
    assert sst2["probabilities"] == pytest.approx(
        expected["probabilities"], abs=1e-5
    )
    _, model, packer = adapters["stsb"]
    features = packer(*([text] for text in TEXTS))
    (expected,) = model.head.decode(_numpy(model, features))
    assert stsb == pytest.approx(expected, abs=1e-4)


def _numpy(model, features):
    return ops.convert_to_numpy(model(features, training=False))


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("encoder.fingerprint", "0" * 64, "encoder"),
        ("method.activation", "relu", "method"),
        ("method.name", "pfeiffer", "method"),
        ("left_out", [0], "left-out blocks"),
        ("head.reads", "pooled_output", "what the head reads"),
        ("head.windows", 3, "windows"),
        ("encoder.quantization", "int8", "quantization"),
    ],
)
def test_an_adapter_that_does_not_fit_is_refused(
    adapters, exported, program, key, value, what
):
    metadata = _session(exported).get_modelmeta().custom_metadata_map
    path = adapters["sst2"][0] / "adapter_config.json"
    config = json.loads(path.read_text())
    program["check"](config, metadata)
    *path_to, last = key.split(".")
    part = functools.reduce(dict.__getitem__, path_to, config)
    part[last] = value
    with pytest.raises(
        SystemExit, match="The adapter does not fit.* as " + what
    ):
        program["check"](config, metadata)


def test_a_head_of_another_kind_is_refused(adapters, exported, program):
    metadata = _session(exported).get_modelmeta().custom_metadata_map
    path = adapters["stsb"][0] / "adapter_config.json"
    config = json.loads(path.read_text())
    config["head"]["name"] = "choice"
    with pytest.raises(SystemExit, match="regression. Received: choice"):
        program["check"](config, metadata)


def test_the_texts_must_be_those_of_the_adapter(
    adapters, program, tmp_path, capsys
):
    run = tmp_path / "run"
    shutil.copytree(adapters["stsb"][0], run / "adapter")
    program["main"](run, list(TEXTS))
    assert "score" in json.loads(capsys.readouterr().out)
    with pytest.raises(SystemExit, match=r"one text or two. Received: 3"):
        program["main"](run, ["a", "b", "c"])
    change_config(
        run / "adapter",
        lambda config: config["details"].update(text_fields=["a", "b"]),
    )
    with pytest.raises(SystemExit, match='"<a>" "<b>"'):
        program["main"](run, [TEXTS[0]])
    with pytest.raises(SystemExit, match="no adapter in"):
        program["main"](tmp_path, [TEXTS[0]])


def test_texts_are_as_long_as_the_adapter_reads(exported, program, adapters):
    _, model, packer = adapters["sst2"]
    session, text = _session(exported), "film " * 30
    for length in (5, packer.max_length):
        packed = tf_adapters.TextPacker(packer.tokenizer, length)([text])
        found = program["features"](session, [text], length)
        np.testing.assert_array_equal(found["token_ids"], packed["token_ids"])
    same = program["features"](session, [text], None)
    np.testing.assert_array_equal(same["token_ids"], found["token_ids"])


@pytest.fixture(scope="module")
def program(exported):
    """The names of run.py."""
    return runpy.run_path(str(exported / "run.py"))


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"kernel": np.ones((3, 3))}, "kernel is .3, 3., more than .* widest"),
        ({"kernel": np.ones((3, 2)), "b": 0}, "do not both have b"),
        ({"b": 0}, "do not both have b, kernel"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(program, tensors, message):
    shapes = {"kernel": ["labels", 2]}
    with pytest.raises(SystemExit, match=message):
        program["filled"](tensors, shapes)


@pytest.mark.parametrize(
    ("method", "head"),
    [
        (methods.Pfeiffer(), heads.Classification(("a", "b"), windows=2)),
        (methods.Pfeiffer(), heads.Regression(hidden_layer="tanh")),
        (methods.Pfeiffer(), heads.Tagging(labels=("a", "b"))),
    ],
)
def test_what_cannot_be_an_input_is_refused(method, head, exported, tmp_path):
    model = tf_adapters.adapt(tiny.encoder(), method, head)
    packer = conftest.make_packer("bert")
    with pytest.raises(AdapterError, match="Export the whole model"):
        onnx_encoder.export_onnx_encoder(model, packer, tmp_path / "encoder")
    assert not (tmp_path / "encoder").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", cases.names())
def test_methods(name, tmp_path):
    task, method = tasks.get("sst2"), cases.EVERY[name]
    packer = conftest.make_packer("bert")
    one, _ = conftest.make_model("bert", method, task)
    other, _ = conftest.make_model("bert", method, task, seed=1)
    if name in REFUSED:
        with pytest.raises(AdapterError, match="cannot be an input"):
            onnx_encoder.export_onnx_encoder(one, packer, tmp_path / "one")
        return
    folder = onnx_encoder.export_onnx_encoder(one, packer, tmp_path / "one")
    tf_adapters.save_adapter(other, tmp_path / "other")
    session, features = _session(folder), _features(other)
    tensors = _weights(tmp_path / "other", session)
    (found,) = session.run(None, features | tensors)
    np.testing.assert_allclose(found, _expected(other, features), atol=1e-4)
