"""Tests `tf_adapters.train`: its text model and run folder."""

import csv
import json
import shutil

import pandas as pd
import pytest

from tests import commands
from tests.cli import subcommands
import tf_adapters
from tf_adapters import methods
from tf_adapters.config import resolve
from tf_adapters.data.rows import splits

pytestmark = pytest.mark.integration

COUNTS = {"Geschäft": 15, "Sport": 9}
COLUMNS = {"text": "review", "label": "topic"}
SMALL = {
    "encoder": commands.ENCODER,
    "max_length": 16,
    "epochs": 2,
    "batch_size": 8,
}


def _frame():
    rows = [
        (f"a film, {name} {i}", name)
        for name, count in COUNTS.items()
        for i in range(count)
    ]
    return pd.DataFrame(rows, columns=["review", "topic"])


def _train(data, folder, **options):
    options = {"method": "head_only", **COLUMNS, **SMALL, **options}
    return tf_adapters.train(data, model_dir=folder, **options)


def _result(folder):
    return json.loads((folder / "result.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Makes a folder with a table, and runs by command and by function."""
    folder = tmp_path_factory.mktemp("launch")
    _frame().to_csv(folder / "table.csv", index=False, quoting=csv.QUOTE_ALL)
    status = subcommands.run(
        "train",
        *(f"--data={folder}/table.csv", "--text=review", "--label=topic"),
        *("--method=pfeiffer", f"--encoder={commands.ENCODER}", "--epochs=2"),
        *("--max_length=16", "--batch_size=8", "--seed=3"),
        *(f"--test={folder}/table.csv", f"--model_dir={folder}/command"),
    )
    assert status == 0
    model = _train(
        _frame(), folder / "function", method="pfeiffer", seed=3, test=_frame()
    )
    return folder, model


def test_the_results_are_the_commands(trained):
    folder, _ = trained
    here, there = _result(folder / "function"), _result(folder / "command")
    assert here["test"] and here["steps"] == 6
    for key in ("validation", "test", "steps", "data_fingerprint", "task"):
        assert here[key] == there[key]
    logs = [
        (folder / name / "metrics.jsonl").read_text("utf-8")
        for name in ("function", "command")
    ]
    assert [_losses(log) for log in logs[:1]] == [_losses(logs[1])]


def _losses(log):
    records = map(json.loads, log.splitlines())
    return [r["loss"] for r in records if "loss" in r]


def test_the_model_answers_as_the_command_predicts(trained, capsys):
    folder, model = trained
    capsys.readouterr()
    assert subcommands.run("predict", folder / "command", "a film") == 0
    expected = json.loads(capsys.readouterr().out)
    (answer,) = model.answer(["a film"])
    assert answer["label"] == expected["label"]
    assert answer["probabilities"] == pytest.approx(
        expected["probabilities"], abs=1e-5
    )


def test_the_run_folder_is_whole_without_the_table(trained):
    folder, model = trained
    assert model.run_folder == folder / "function"
    config = resolve.load_config(model.run_folder / "config.yaml")
    table = model.run_folder / "tables" / "table.jsonl"
    assert config.data.file == str(table)
    rows = commands.read_rows(table)
    assert rows[0] == {"review": "a film, Geschäft 0", "topic": "Geschäft"}
    assert len(rows) == 24
    assert subcommands.run("eval", model.run_folder) == 0
    moved = model.run_folder.rename(folder / "moved")
    try:
        table.parent.mkdir(parents=True)
        table.write_text("another run's")
        assert subcommands.run("eval", moved) == 0
    finally:
        shutil.rmtree(model.run_folder)
        moved.rename(model.run_folder)


def test_the_same_call_loads_the_finished_run(trained, capsys):
    folder, _ = trained
    before = (folder / "function/result.json").stat().st_mtime_ns
    model = _train(
        _frame(), folder / "function", method="pfeiffer", seed=3, test=_frame()
    )
    assert "holds this run, which has finished." in capsys.readouterr().out
    assert (folder / "function/result.json").stat().st_mtime_ns == before
    assert model.answer(["a film"])


def test_a_taken_folder_is_refused_and_left_alone(trained):
    folder, _ = trained
    table = (folder / "function/tables/table.jsonl").read_bytes()
    with pytest.raises(tf_adapters.UserError) as raised:
        _train(_frame()[::-1], folder / "function", method="lora")
    assert "holds a run of another configuration" in str(raised.value)
    assert "Give another model_dir, or overwrite=True" in str(raised.value)
    assert (folder / "function/tables/table.jsonl").read_bytes() == table


def test_other_rows_under_the_same_settings_are_refused(trained):
    folder, _ = trained
    options = {"method": "pfeiffer", "seed": 3, "test": _frame()}
    with pytest.raises(tf_adapters.UserError, match="finished on other data"):
        _train(_frame()[::-1], folder / "function", **options)


def test_what_is_printed_names_arguments(tmp_path, capfd):
    _train(_frame(), tmp_path / "run", epochs=10, validation=_frame()[:5])
    said = capfd.readouterr()
    assert "learning rate 0.01, 30 steps: 10 epochs of 3" in said.out
    assert "(change with learning_rate and epochs)" in said.out
    assert "--" not in said.out
    lines = [line for line in said.err.splitlines() if " of 240, " in line]
    assert len(lines) == 10 and "epoch 10" in lines[-1]


def test_a_method_a_path_and_settings(tmp_path, monkeypatch):
    load_rows, loaded = splits.load_rows, []

    def noting(*arguments):
        loaded.append(load_rows(*arguments))
        return loaded[-1]

    monkeypatch.setattr(splits, "load_rows", noting)
    path = tmp_path / "news.csv"
    _frame().to_csv(path, index=False)
    model = _train(
        path,
        tmp_path / "run",
        method=methods.Pfeiffer(units=4),
        settings={"train.warmup_fraction": 0.5, "head": {"dropout_rate": 0.0}},
    )
    assert model.method.units == 4 and model.head.dropout_rate == 0.0
    config = resolve.load_config(tmp_path / "run/config.yaml")
    assert config.train.warmup_fraction == 0.5 and config.task == "news"
    assert config.data.file == str(path)
    assert not (tmp_path / "run/tables").exists()
    # Of millions of rows, only what they are encoded to is kept.
    assert loaded == [{}]


def test_numbers_are_predicted_where_that_is_asked(tmp_path):
    frame = _frame().assign(topic=[i / 10 for i in range(24)])
    with pytest.raises(tf_adapters.UserError) as raised:
        _train(frame, tmp_path / "run")
    assert 'Add head="regression" to predict the number' in str(raised.value)
    assert not (tmp_path / "run").exists()
    model = _train(frame, tmp_path / "run", head="regression")
    assert isinstance(model.head, tf_adapters.heads.Regression)


@pytest.mark.parametrize(
    ("changes", "options", "sentence"),
    [
        ({}, {"text": "reviev"}, r"text=`.*Did you mean `review`\?"),
        ({}, {"label": "topik"}, r"label=`.*Did you mean `topic`\?"),
        ({"topic": "a"}, {}, "of `data` has the same label in all rows, 'a'"),
        ({"topic": None}, {}, "row 0: column `topic` has no label"),
        ({"review": 5}, {}, r"must hold texts, received 5 \(int\)"),
        ({"review": pd.NA}, {}, "row 0: column `review` has no text"),
        ({}, {"method": "pfeifer"}, "Did you mean `pfeiffer`"),
        ({}, {"method": 5}, "`method` must be the name of a method"),
        ({}, {"settings": ["a"]}, "`settings` must be a dict"),
        ({}, {"settings": {"train.epoch": 1}}, "Did you mean `train.epochs`"),
        ({}, {"settings": {"data.text": ["topic"]}}, "argument `text` sets it"),
        ({}, {"settings": {"data.label": "review"}}, "`label` sets it to 't"),
        ({}, {"head": "span"}, "head"),
        ({}, {"method": "fusion"}, "Name the trained adapters"),
        ({}, {"validation": 5}, "`validation` must be a pandas.DataFrame"),
    ],
)
def test_mistakes(tmp_path, changes, options, sentence):
    frame = _frame().assign(**changes)
    with pytest.raises(tf_adapters.UserError, match=sentence) as raised:
        _train(frame, tmp_path / "run", **options)
    assert "--" not in str(raised.value)
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(tf_adapters.UserError) as raised:
        _train(tmp_path / "none.csv", tmp_path / "run")
    assert "There is no file" in str(raised.value)
    assert str(raised.value).endswith("Say where it is with data=.")
