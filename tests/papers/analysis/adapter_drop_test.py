"""Tests which adapters are dropped, and the metrics and speeds."""

import csv
import types

import pandas as pd
import pytest

from tests import commands
from tests import tiny
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.cli import analyse
from tf_adapters.common.errors import UserError
from tf_adapters.models.adapter_model import adapt
from tf_adapters.papers.analysis import adapter_drop
from tf_adapters.papers.analysis.support import passes
from tf_adapters.papers.analysis.support import trained_run

HEAD = heads.Classification(("no", "yes"))


def test_every_number_of_first_and_last_blocks():
    assert adapter_drop.variants((0, 1, 2)) == [
        ("none", ()),
        ("first", (0,)),
        ("first", (0, 1)),
        ("first", (0, 1, 2)),
        ("last", (2,)),
        ("last", (1, 2)),
    ]
    # Some may have been left out in training.
    assert adapter_drop.variants((2, 5)) == [
        ("none", ()),
        ("first", (2,)),
        ("first", (2, 5)),
        ("last", (5,)),
    ]


class _Run:
    """A trained run, whose metric is the first logit of the first text."""

    task = types.SimpleNamespace(metrics=["logit"])

    def __init__(self, method):
        self.method = method
        features = tiny.batch(tiny.encoder())
        self.rows = {"validation": features}

    def experiment(self):
        model = self.model = adapt(tiny.encoder(), self.method, HEAD)
        tiny.randomize(model.trained_variables().values())
        trainer = types.SimpleNamespace(
            evaluate=lambda features: {"logit": float(model(features)[0, 0])}
        )
        return types.SimpleNamespace(
            model=model, trainer=trainer, task=self.task, examples=lambda x: x
        )


def _table_of(method, monkeypatch):
    run = _Run(method)
    monkeypatch.setattr(trained_run, "load_run", lambda folder: run)
    monkeypatch.setattr(adapter_drop, "_timed", lambda *_: None)
    monkeypatch.setattr(passes, "compare_speeds", lambda *_: (1.0, 1.0, 1.0))
    options = types.SimpleNamespace(folders=["run"], turns=1)
    return run, adapter_drop.AdapterDrop().table(options)


def test_a_union_is_measured_without_its_adapters(monkeypatch):
    prefix = methods.PrefixTuning(prefix_length=3, hidden_units=0)
    method = methods.Union((prefix, methods.LoRA(rank=2, projections=("key",))))
    run, table = _table_of(method, monkeypatch)
    features = run.rows["validation"]
    for row in table.itertuples():
        model = run.experiment().model
        blocks = {"none": [], "first": [0, 1], "last": [1, 0]}[row.blocks]
        model.leave_out(blocks[: row.left_out])
        assert row.value == pytest.approx(float(model(features)[0, 0]))
    assert table.value.nunique() == len(table) == 4


def test_without_adapters_there_is_nothing_to_leave_out(monkeypatch):
    with pytest.raises(UserError, match="nothing to leave out"):
        _table_of(methods.BitFit(), monkeypatch)


@pytest.mark.slow
def test_a_run(tmp_path, capsys):
    settings = {
        "task": "demo_sentiment",
        "encoder": commands.ENCODER_OF_TWO_BLOCKS,
        "method": "houlsby",
        "data": {"max_train_examples": 64, "max_length": 24},
        "train": {"epochs": 3, "batch_size": 8, "learning_rate": 3e-2},
    }
    folder = tmp_path / "run"
    assert commands.run(folder, settings) == 0
    capsys.readouterr()
    arguments = ["adapter_drop", f"--model_dir={folder}", "--turns=1"]
    assert analyse.run_analysis(arguments) == 0
    with (folder / "adapter_drop.csv").open() as file:
        rows = {
            (row["blocks"], int(row["left_out"])): row
            for row in csv.DictReader(file)
        }
    assert set(rows) == {("none", 0), ("first", 1), ("first", 2), ("last", 1)}
    assert (folder / "adapter_drop.png").stat().st_size > 5000
    assert float(rows["none", 0]["speed"]) == 1
    capsys.readouterr()
    for left_out, key in (([], ("none", 0)), ([1], ("last", 1))):
        override = [f"method.leave_out={left_out}"]
        status = commands.run(folder, mode="eval", params_override=override)
        assert status == 0
        value = float(rows[key]["value"])
        assert f"validation: accuracy {value:.4f}" in capsys.readouterr().out


@pytest.mark.slow
def test_a_method_without_adapters(tmp_path, capsys):
    settings = {
        "task": "demo_sentiment",
        "encoder": commands.ENCODER_OF_TWO_BLOCKS,
        "method": "head_only",
        "data": {"max_train_examples": 16, "max_length": 24},
        "train": {"epochs": 1},
    }
    assert commands.run(tmp_path, settings) == 0
    assert (
        analyse.run_analysis(["adapter_drop", f"--model_dir={tmp_path}"]) == 1
    )
    assert "nothing to leave out" in capsys.readouterr().err


def test_picture():
    rows = [
        ("none", 0, "f1", 0.8, 1.0, 1.0, 1.0),
        ("first", 1, "f1", 0.79, 1.1, 1.0, 1.2),
        ("first", 2, "f1", 0.7, 1.2, 1.1, 1.2),
        ("last", 1, "f1", 0.6, 1.05, 1.0, 1.1),
    ]
    table = pd.DataFrame(rows, columns=adapter_drop.COLUMNS)
    figure = adapter_drop.AdapterDrop().draw(table)
    metric, speed = figure.axes
    lines = {line.get_label(): line for line in metric.get_lines()}
    assert lines["first"].get_ydata().tolist() == [0.8, 0.79, 0.7]
    assert lines["last"].get_ydata().tolist() == [0.8, 0.6, 0.7]
    assert speed.get_ylim()[1] == pytest.approx(1.3 * 1.2)
