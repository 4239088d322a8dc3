"""What ONNX or the disk does not allow is an error, and changes nothing."""

import dataclasses
import errno
import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests import commands
from tests.export import conftest
import tf_adapters
from tf_adapters import heads
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.export import onnx_file
from tf_adapters.export import onnx_model

pytestmark = pytest.mark.integration


def _write(path, function, shape=(None,)):
    signature = [tf.TensorSpec(shape, tf.float32, "x")]
    traced = tf.function(
        lambda x: {"y": function(x)}, input_signature=signature, autograph=False
    )
    content = onnx_file.convert(traced, {"a": "fact"})
    path.write_bytes(content.SerializeToString())
    return content


def test_an_operation_that_onnx_lacks_is_named(tmp_path):
    path = tmp_path / "model.onnx"
    _write(path, lambda x: tf.bitcast(x, tf.int32))
    with pytest.raises(AdapterError, match="cannot load.*Bitcast.*SavedModel"):
        onnx_file.runner(path)


def test_a_norm_without_offset_is_fused_and_another_form_is_not(tmp_path):
    gamma = np.linspace(0.5, 2, 8).astype("float32")

    def norm(x):
        centered = x - tf.reduce_mean(x, -1, keepdims=True)
        variance = tf.reduce_mean(centered * centered, -1, keepdims=True)
        return centered * tf.math.rsqrt(variance + 1e-5) * gamma

    def unlike(x):
        centered = x - tf.reduce_mean(x, -1, keepdims=True)
        power = tf.reduce_mean(x * x, -1, keepdims=True)
        return centered * tf.math.rsqrt(power + 1e-5) * gamma

    x = np.random.default_rng(0).normal(1, 2, (2, 3, 8)).astype("float32")
    for function, count in ((norm, 1), (unlike, 0)):
        path = tmp_path / "model.onnx"
        content = _write(path, function, (None, None, 8))
        kinds = [node.op_type for node in content.graph.node]
        assert kinds.count("LayerNormalization") == count
        found = onnx_file.runner(path)({"x": x})["y"]
        np.testing.assert_allclose(found, function(x), atol=1e-5)


def test_what_only_a_branch_reads_stays(tmp_path):
    def branching(x):
        doubled = 2 * x
        return tf.cond(
            tf.reduce_sum(x) > 0, lambda: doubled + 1, lambda: -doubled
        )

    path = tmp_path / "model.onnx"
    _write(path, branching)
    run = onnx_file.runner(path)
    for sign in (1, -1):
        x = sign * np.arange(1, 4, dtype="float32")
        np.testing.assert_allclose(run({"x": x})["y"], branching(x))


def test_a_full_disk_keeps_the_earlier_export(tmp_path, monkeypatch):
    head = heads.Classification(("a", "b"))
    method = tf_adapters.methods.BitFit()
    encoder = tf_adapters.load_encoder(str(conftest.ENCODERS / "bert"))[0]
    model = tf_adapters.adapt(encoder, method, head)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"earlier")

    def full(self, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    # What is written does not matter here, and converting takes seconds.
    content = type("Content", (), {"SerializeToString": lambda self: b"new"})
    monkeypatch.setattr(onnx_file, "convert", lambda *_: content())
    with pytest.raises(OSError, match="No space left"):
        onnx_model.export_onnx(model, conftest.make_packer("bert"), folder)
    assert (folder / "model.onnx").read_bytes() == b"earlier"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"format": "saved_model"},
            "int8 is not a precision of --format=saved",
        ),
        (
            {"format": "onnx", "precision": "int4"},
            "onnx (float32, int8, int8_static)",
        ),
        (
            {"format": "litert", "precision": "mixed_bfloat16"},
            "mixed_bfloat16 is not a precision of --format=litert",
        ),
        (
            {"format": "onnx_encoder", "precision": "mixed_bfloat16"},
            "mixed_bfloat16 is not a precision of --format=onnx_encoder",
        ),
    ],
)
def test_a_format_without_that_precision(options, message, tmp_path, capsys):
    precision = options.get("precision", "int8")
    status = commands.run(
        tmp_path,
        {"train": {"precision": precision}},
        mode="export",
        **{"precision": precision, **options},
    )
    assert status == 1
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_without_its_data_is_checked_on_sentences(
    tmp_path, capsys, caplog
):
    method = tf_adapters.methods.Houlsby(units=4)
    *_, config = conftest.make_run(tmp_path, "wnli", method)
    # The file computes in float32 all the same.
    train = dataclasses.replace(config.train, precision="mixed_bfloat16")
    config = dataclasses.replace(config, train=train)
    folder = onnx_model.export_run(config, tmp_path, "int8")
    assert folder == tmp_path / "onnx_int8" / "wnli"
    assert "built-in sentences" in caplog.text
    assert "200 predictions" in capsys.readouterr().out
    names = ["model_int8.onnx", "run.py", "tokenizer.json"]
    assert sorted(path.name for path in folder.iterdir()) == names


@pytest.mark.slow
def test_a_text_model_is_checked_on_the_given_texts(tmp_path, capsys):
    head = heads.Classification(("a", "b"))
    encoder = tf_adapters.load_encoder(str(conftest.ENCODERS / "bert"))[0]
    model = tf_adapters.TextModel(
        encoder, head=head, preprocessor=conftest.make_packer("bert")
    )
    pairs = [("the film is good", "it was bad"), ("", "dull")] * 15
    path = tmp_path / "model"
    for precision in ("int8_static", "int8"):  # The second one replaces it.
        model.export(path, format="onnx", precision=precision, texts=pairs)
        assert f"{precision} file gives" in capsys.readouterr().out
        assert (path / f"model_{precision}.onnx").exists()
    with pytest.raises(UserError, match="no effect on a SavedModel"):
        model.export(tmp_path / "other", precision="int8")
