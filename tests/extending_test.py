"""Tests the method, head and encoder of `docs/extending.md`, up to serving."""

import dataclasses
import json
import os
from pathlib import Path
import re
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import commands
from tests import tiny
from tests.cli import subcommands
from tests.methods.cases import CASES
from tests.methods.cases import ONE_OF_EACH
import tf_adapters
from tf_adapters import encoders
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.config import plugins
from tf_adapters.encoders import mpnet
from tf_adapters.encoders.keras_hub_families import FAMILIES
from tf_adapters.launch import process_runner
from tf_adapters.layers.slot import Slot
from tf_adapters.methods.registry import METHODS
from tf_adapters.models import saving
from tf_adapters.report import run_files
from tf_adapters.report import run_report
from tf_adapters.report import scores
from tf_adapters.tasks.output_kinds import KINDS

pytestmark = pytest.mark.integration

PAGE = Path(__file__).parents[1] / "docs/extending.md"


def _blocks(language):
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Makes a folder with the page's files and rows of its task."""
    folder = tmp_path_factory.mktemp("extending")
    method, head, *_ = _blocks("python")
    (folder / "grades.py").write_text(method + "\n\n" + head)
    (folder / "grades.yaml").write_text(_blocks("yaml")[0])
    rows = "".join(
        f"the film is {text},{label}\n"
        for text, label in [("bad", "bad"), ("so so", "fair"), ("good", "good")]
        * 8
    )
    for name in ("train.csv", "dev.csv"):
        (folder / name).write_text("sentence,label\n" + rows)
    (folder / "texts.txt").write_text("the film is good\nit is bad\n")
    return folder


@pytest.fixture(scope="module", autouse=True)
def _forgotten():
    """Removes the classes that the plug-ins registered, for other tests."""
    registries = (METHODS, heads.HEADS, KINDS)
    before = [dict(registry) for registry in registries]
    yield
    for registry, items in zip(registries, before, strict=True):
        registry.clear()
        registry.update(items)
    plugins._LOADED.clear()


@pytest.fixture(scope="module")
def run(folder):
    """Makes a run with the plug-in, trained by the page's command."""
    settings = {
        "method": "scale_and_shift",
        "encoder": commands.ENCODER,
        "data": {"task_file": str(folder / "grades.yaml"), "max_length": 16},
        "train": {"epochs": 1, "learning_rate": 1e-2},
    }
    plugin = [str(folder / "grades.py")]
    assert commands.run(folder / "run", settings, plugin=plugin) == 0
    return folder / "run"


def _model(method):
    head = heads.Classification(labels=("a", "b"))
    return tf_adapters.adapt(tiny.encoder(), method, head)


def test_it_trains_and_predicts(run, folder, capsys):
    result = json.loads((run / "result.json").read_text())
    assert set(result["validation"]) == {"accuracy", "mean_distance"}
    texts = str(folder / "texts.txt")
    assert commands.run(run, mode="predict", input=texts) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["label"] in ("bad", "fair", "good") for row in rows] == [1, 1]


def test_what_is_exported_answers(run):
    assert commands.run(run, mode="export") == 0
    (path,) = (run / "export/grades").glob("[0-9]*")
    served = tf.saved_model.load(str(path)).signatures["serving_default"]
    answers = served(sentence=tf.constant(["the film is good"]))
    assert answers["label"].numpy()[0] in (b"bad", b"fair", b"good")
    assert answers["above"].shape == (1, 2)


def test_the_report_judges_the_first_metric_only(run, folder):
    """The second one, a distance, is better if it is lower."""
    plugin = f"--plugin={folder / 'grades.py'}"
    assert subcommands.run("report", run, plugin) == 0
    stored = run_files.read_run(run)
    compared = dict(stored.stored.compared)
    right = dataclasses.replace(
        stored.stored, compared={**compared, "predicted": compared["target"]}
    )
    perfect = dataclasses.replace(stored, stored=right)
    worst = [2 - label for label in compared["target"]]
    _, note = scores.table_of_scores(perfect, worst, "another")
    assert note == ""
    content = run_report._find(stored)
    assert not [n for n in content.notes if "stored without prob" in n]


def test_a_plugin_in_a_union_is_named(tmp_path):
    module = sys.modules["tf_adapters_plugin_grades"]
    union = methods.Union((module.ScaleAndShift(), methods.LoRA(rank=1)))
    tf_adapters.save_adapter(_model(union), tmp_path / "adapter")
    config = json.loads((tmp_path / "adapter/adapter_config.json").read_text())
    assert config["plugins"] == {"scale_and_shift": "grades.py"}


def test_a_bank_refuses_what_does_not_stack(run, capsys):
    options = {"mode": "export", "adapters": [str(run)]}
    assert commands.run(run.parent / "served", **options) == 1
    error = capsys.readouterr().err
    assert "The class Affine does not define `bank_parts`" in error


@dataclasses.dataclass(frozen=True)
class _Stacks(methods.Pfeiffer):
    """A user's method that a bank supports."""


def test_a_bank_takes_what_stacks(monkeypatch):
    monkeypatch.setitem(METHODS, "stacks", _Stacks)
    model = _model(_Stacks(units=4, init_stddev=0.3))
    inputs = tiny.batch(model.encoder_info)
    bank = tf_adapters.load_bank([model], model.encoder_info)
    answers = bank({**inputs, "adapter_ids": np.zeros(3, "int32")})
    np.testing.assert_allclose(answers, model(inputs), atol=1e-6)


def test_a_fusion_refuses_what_does_not_stack(run, capsys):
    settings = {
        "task": "demo_sentiment",
        "method": {"name": "fusion", "adapters": [str(run)]},
        "encoder": commands.ENCODER,
        "data": {"max_length": 16},
    }
    assert commands.run(run.parent / "fused", settings) == 1
    assert "only bottleneck adapters" in capsys.readouterr().err


def test_in_python_it_is_an_import(run, monkeypatch):
    block = _blocks("python")[2]
    module = sys.modules["tf_adapters_plugin_grades"]
    monkeypatch.setitem(sys.modules, "grades", module)
    load = tf_adapters.load_encoder
    monkeypatch.setattr(
        tf_adapters, "load_encoder", lambda _: load(commands.ENCODER)
    )
    names = {}
    exec(block, names)
    assert names["model"].head.labels == ("bad", "fair", "good")


def test_a_keras_file_has_it(run, folder, tmp_path):
    module = sys.modules["tf_adapters_plugin_grades"]
    model = _model(module.ScaleAndShift())
    inputs = tiny.batch(model.encoder_info)
    expected = model(inputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(inputs), expected, atol=1e-6)


@pytest.mark.slow
def test_without_the_plug_in_nothing_is_run(run, folder):
    command = [sys.executable, "-m", "tf_adapters", f"--model_dir={run}"]
    command += ["--mode=predict", f"--input={folder / 'texts.txt'}"]
    result = subprocess.run(
        command, capture_output=True, text=True, env=dict(os.environ)
    )
    assert result.returncode == 1
    assert "--plugin" in result.stderr and "Traceback" not in result.stderr


def test_loading_names_the_plug_in(run, monkeypatch):
    monkeypatch.delitem(METHODS, "scale_and_shift")
    with pytest.raises(UserError, match="grades.py.*None of its code was run"):
        encoder, _ = tf_adapters.load_encoder(commands.ENCODER)
        tf_adapters.load_adapter(run / "adapter", encoder)


def test_other_processes_get_the_plug_in(run, folder):
    flags = process_runner.train_flags(["-m", "x"], "a.yaml", "b")
    assert f"--plugin={folder / 'grades.py'}" in flags


def test_a_cell_that_runs_twice_leaves_models_that_can_be_saved(tmp_path):
    cell = _blocks("python")[0]
    names = {"__name__": "__main__"}
    exec(cell, names)
    older = _model(names["ScaleAndShift"]())
    exec(cell, names)
    newer = _model(names["ScaleAndShift"]())
    tiny.randomize(older.trained_variables().values())
    saving.save_adapter(older, tmp_path / "adapter")
    older.save(tmp_path / "model.keras")
    inputs = tiny.batch(older.encoder_info)
    loaded = saving.load_adapter(tmp_path / "adapter", older.encoder_info)
    assert type(loaded.method) is type(newer.method) is not type(older.method)
    np.testing.assert_array_equal(loaded(inputs), older(inputs))
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(inputs), older(inputs))
    saving.start_from(older, tmp_path / "adapter")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is not a file"),
        ("1 / 0", "ZeroDivisionError"),
        (
            "from tf_adapters import methods\n"
            "@methods.register('x')\nclass X: pass\n",
            "inherits from `Method`",
        ),
        (
            "from tf_adapters import methods\n"
            "@methods.register('houlsby')\nclass X(methods.Method): pass\n",
            "There is a method `houlsby` already",
        ),
        (
            "from tf_adapters import heads\n"
            "@heads.register('x')\nclass X(heads.Head): pass\n",
            "needs an `OutputKind`",
        ),
        (
            "from tf_adapters import methods\n"
            "@methods.register('x')\nclass X(methods.Method):\n"
            "  def pack(self, tensors): return tensors\n",
            "`pack` is now a method of the object that `gating` returns",
        ),
    ],
)
def test_mistakes_in_a_plug_in(text, message, tmp_path):
    path = tmp_path / "mistake.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=re.escape(message)):
        plugins.load_plugins([path])


class _Named(methods.Method):
    def make_slots(self, shape):
        return [{"after_ffn": _Dense(name="mine")} for _ in range(2)]


class _Dense(Slot):
    def build(self, input_shape):
        self.vector = self.add_weight((2,), name="vector")


class _UnnamedDense(methods.Method):
    def make_slots(self, shape):
        return [{"after_ffn": _Dense()} for _ in range(shape.num_blocks)]


class _Frozen(methods.Method):
    def make_slots(self, shape):
        return [
            {"after_ffn": _Constant(name=f"block_{i}")}
            for i in range(shape.num_blocks)
        ]


class _Constant(Slot):
    def build(self, input_shape):
        self.add_weight((2,), name="constant", trainable=False)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (_UnnamedDense(), "Keras generated"),
        (_Frozen(), "`block_0/constant` of a slot does not train"),
        (_Named(), "Two trained weights are called `mine/vector`"),
    ],
)
def test_names_that_no_folder_could_hold(method, message):
    with pytest.raises(UserError, match=message):
        _model(method).trained_variables()


@pytest.fixture(scope="module")
def own_encoder():
    """The names of the page's encoder; its check has run."""
    known, names = dict(FAMILIES), {"__name__": "my_encoder"}
    for block in _blocks("python")[-2:]:
        exec(block, names)
    yield names
    FAMILIES.clear()
    FAMILIES.update(known)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_every_method_runs_on_the_encoder(own_encoder, name, tmp_path):
    backbone, features = own_encoder["backbone"], own_encoder["features"]
    head = heads.Classification(labels=("a", "b"))
    method = CASES[name][0]
    model = tf_adapters.adapt(backbone, method, head)
    tiny.randomize(model.trained_variables().values(), 0.2)
    answers = model(features)
    assert np.ptp(answers, axis=0).max() > 1e-4
    saving.save_adapter(model, tmp_path / "adapter")
    model.encoder_info.restore()
    again = saving.load_adapter(tmp_path / "adapter", model.encoder_info)
    np.testing.assert_array_equal(again(features), answers)
    model.encoder_info.restore()


def test_the_encoder_is_loaded_from_its_preset(own_encoder, tmp_path):
    backbone = own_encoder["backbone"]
    backbone.save_to_preset(str(tmp_path))
    encoder, _ = tf_adapters.load_encoder(tmp_path, with_tokenizer=False)
    features = own_encoder["features"]
    np.testing.assert_array_equal(
        encoder.backbone(features), backbone(features)
    )


@pytest.mark.parametrize(
    ("backbone", "architecture", "message"),
    [
        (keras.Model, encoders.Architecture("relu", 1e-6), "inherits from"),
        (mpnet.MPNetBackbone, "post", "says how the backbone is computed"),
        (
            mpnet.MPNetBackbone,
            encoders.Architecture("relu", 1e-6),
            "MPNetBackbone is known with another architecture",
        ),
    ],
)
def test_what_is_no_encoder(backbone, architecture, message):
    with pytest.raises(UserError, match=message):
        encoders.register(backbone, architecture)
