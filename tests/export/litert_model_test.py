"""A LiteRT file answers as the model, at each of its lengths."""

import errno
import json
import sys
import zipfile

from ai_edge_litert import interpreter
from keras import ops
import numpy as np
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
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.export import litert_file
from tf_adapters.export import litert_model
from tf_adapters.export import tokenizer_file

pytestmark = pytest.mark.integration

LENGTHS = (8, 16)


def _batch(model, length, seed=3):
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


def _assert_equal(model, folder, lengths=LENGTHS):
    file = interpreter.Interpreter(str(folder / "model.tflite"))
    assert sorted(file.get_signature_list()) == sorted(
        f"tokens_{length}" for length in lengths
    )
    for length in lengths:
        features = _batch(model, length)
        found = file.get_signature_runner(f"tokens_{length}")(**features)
        expected = ops.convert_to_numpy(model(features, training=False))
        assert np.ptp(expected) > 0.1
        (name,) = set(found) & {"logits", "outputs"}
        np.testing.assert_allclose(found[name], expected, atol=1e-4)
    return found


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    model, _ = conftest.make_model(
        "bert", tf_adapters.methods.Houlsby(units=4), tasks.get("wnli")
    )
    packer = conftest.make_packer("bert")
    folder = tmp_path_factory.mktemp("litert") / "wnli"
    tf_adapters.export_litert(model, packer, folder, lengths=LENGTHS)
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
    with zipfile.ZipFile(folder / "model.tflite") as archive:
        facts = json.loads(archive.read("metadata.json"))
    assert heads.from_config(json.loads(facts["head"])) == model.head
    assert json.loads(facts["labels"]) == list(model.head.labels)
    assert facts["max_length"] == str(packer.max_length)


def test_features_of_another_type_length_or_rank_are_refused(exported):
    model, _, folder = exported
    file = interpreter.Interpreter(str(folder / "model.tflite"))
    run = file.get_signature_runner("tokens_8")
    good = _batch(model, 8)
    for bad in (
        {name: x.astype("int64") for name, x in good.items()},
        _batch(model, 9),
        {name: x[0] for name, x in good.items()},
    ):
        with pytest.raises((ValueError, RuntimeError)):
            run(**bad)


@pytest.mark.parametrize(
    ("max_length", "expected"),
    [(10, [10]), (16, [16]), (100, [16, 32, 64, 100])],
)
def test_the_usual_lengths(max_length, expected):
    assert litert_model.checked_lengths(None, max_length) == expected


@pytest.mark.parametrize("lengths", [[], [1], [17]])
def test_lengths_out_of_range_are_refused(exported, lengths):
    model, packer, folder = exported
    with pytest.raises(UserError, match="between 2 and"):
        tf_adapters.export_litert(model, packer, folder, lengths=lengths)


def test_an_operation_that_litert_lacks_is_named():
    lacking = tf.function(
        lambda x: {"y": tf.math.erf(x)},
        input_signature=[tf.TensorSpec((None,), name="x")],
    )
    with pytest.raises(AdapterError, match="lacks the operation Erf"):
        litert_file.convert({"tokens_8": lacking})


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_earlier_export_stays_if_the_disk_is_full(exported, monkeypatch):
    model, packer, folder = exported
    earlier = (folder / "model.tflite").read_bytes()

    def is_full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(litert_file, "convert", lambda _: earlier)
    monkeypatch.setattr(tokenizer_file, "write", is_full)
    with pytest.raises(OSError, match="No space"):
        tf_adapters.export_litert(model, packer, folder, lengths=LENGTHS)
    assert (folder / "model.tflite").read_bytes() == earlier
    assert sorted(path.name for path in folder.parent.iterdir()) == ["wnli"]


def test_a_missing_library_is_reported_before_the_work(
    exported, monkeypatch, tmp_path
):
    model, packer, _ = exported
    monkeypatch.setitem(sys.modules, "ai_edge_litert", None)
    with pytest.raises(ConfigError, match=r"tf_adapters\[export\]"):
        tf_adapters.export_litert(model, packer, tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_that_differs_is_not_kept(exported, monkeypatch):
    model, packer, folder = exported
    earlier = (folder / "model.tflite").read_bytes()
    monkeypatch.setattr(litert_file, "convert", lambda _: earlier)
    bias = model.head_layer.bias
    bias.assign(bias + 0.1)
    try:
        with pytest.raises(AdapterError, match="Nothing was written"):
            tf_adapters.export_litert(model, packer, folder, lengths=LENGTHS)
    finally:
        bias.assign(bias - 0.1)
    assert (folder / "model.tflite").read_bytes() == earlier


def test_weights_are_quantized():
    kernel = np.random.default_rng(0).normal(size=(64, 64)).astype("float32")
    weights = tf.Variable(kernel)
    function = tf.function(
        lambda x: {"y": tf.matmul(x, weights)},
        input_signature=[tf.TensorSpec((None, 64), name="x")],
    )
    exact = litert_file.convert({"tokens_8": function})
    content = litert_file.convert({"tokens_8": function}, is_quantized=True)
    assert len(content) < len(exact) - 2 * kernel.size
    file = interpreter.Interpreter(model_content=content)
    x = np.ones((3, 64), "float32")
    found = file.get_signature_runner("tokens_8")(x=x)["y"]
    np.testing.assert_allclose(found, x @ kernel, atol=0.2)
    assert np.abs(found - x @ kernel).max() > 1e-4


@pytest.mark.slow
def test_a_quantized_file_is_close_to_the_float_file(exported, tmp_path):
    model, packer, folder = exported
    text_model = tf_adapters.TextModel.of_adapter(model, preprocessor=packer)
    new = tmp_path / "wnli"
    text_model.export(new, format="litert", precision="int8")
    assert sorted(path.name for path in new.iterdir()) == [
        "model_int8.tflite",
        "tokenizer.json",
    ]
    with zipfile.ZipFile(new / "model_int8.tflite") as archive:
        facts = json.loads(archive.read("metadata.json"))
    assert facts["precision"] == "int8"
    quality = json.loads(facts["quality"])
    assert 0.9 <= quality["equal_predictions"] <= 1
    assert 0.9 < quality["explained_variance"] < 1
    size = (new / "model_int8.tflite").stat().st_size
    assert size < (folder / "model.tflite").stat().st_size


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
    folder = tmp_path / "model"
    tf_adapters.export_litert(model, packer, folder, lengths=LENGTHS)
    _assert_equal(model, folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", head_models.TASKS)
def test_heads(kind, tmp_path):
    method = tf_adapters.methods.LoRA(rank=2)
    model = head_models.make_model(method, head_models.TASKS[kind])
    packer = conftest.make_packer("bert")
    folder = tmp_path / "model"
    tf_adapters.export_litert(model, packer, folder, lengths=LENGTHS)
    _assert_equal(model, folder)


# PEFT's prompts come before Keras's layer of positions, which broadcasts.
REFUSED = "prompt_tuning_peft"


@pytest.mark.slow
def test_a_method_that_it_cannot_run_is_refused(tmp_path):
    model, _ = conftest.make_model(
        "bert", cases.EVERY[REFUSED], tasks.get("wnli")
    )
    packer = conftest.make_packer("bert")
    with pytest.raises(AdapterError, match=r"LiteRT cannot run.*ONNX file"):
        tf_adapters.export_litert(model, packer, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in cases.ONE_EACH if n != REFUSED])
def test_methods(name, tmp_path):
    model, _ = conftest.make_model("bert", cases.EVERY[name], tasks.get("wnli"))
    # With large outputs, the two orders of a fusion's products in Keras differ
    # by more than the tolerance.
    model.head_layer.kernel.assign(0.25 * model.head_layer.kernel)
    packer = conftest.make_packer("bert")
    folder = tmp_path / "model"
    tf_adapters.export_litert(model, packer, folder, lengths=[8])
    _assert_equal(model, folder, [8])
