"""What people type: runs from flags to files, and mistakes in one sentence."""

import json
import types

import pytest

from tests.fixtures import huggingface_folders
from tf_adapters import command_line
from tf_adapters import config as config_lib
from tf_adapters import tables
from tf_adapters import tasks

ENCODER = str(huggingface_folders.folder("bert"))


def _run(tmp_path, settings=None, **options):
    """Returns the exit status of a command."""
    defaults = {
        "mode": "train_and_eval",
        "model_dir": str(tmp_path / "run"),
        "config_file": None,
        "params_override": [],
        "input": None,
        "output": None,
        "list": None,
        "study": None,
        "glue_submission": None,
    }
    layer = {"data": {}, "train": {}}
    layer = config_lib.merge(layer, settings or {})
    return command_line.run(
        layer, types.SimpleNamespace(**{**defaults, **options})
    )


SMALL = {
    "task": "demo_sentiment",
    "encoder": ENCODER,
    "method": "houlsby",
    "data": {"max_train_examples": 64, "max_length": 24},
    "train": {"epochs": 1},
}


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("command_line")
    assert _run(folder, SMALL) == 0
    return folder


def test_a_run_leaves_its_files(run_folder):
    run = run_folder / "run"
    result = json.loads((run / "result.json").read_text())
    assert set(result["validation"]) == {"accuracy"} == set(result["test"])
    assert result["examples"] == 64 and result["steps"] == 2
    assert len(result["data_fingerprint"]["train"]) == 64
    assert result["versions"]["tensorflow"].startswith("2.21")
    assert config_lib.load(run / "config.yaml").encoder == ENCODER
    assert "all that trains" in (run / "trained_weights.txt").read_text()
    assert list((run / "tensorboard").iterdir())
    records = [
        json.loads(line)
        for line in (run / "metrics.jsonl").read_text().splitlines()
    ]
    assert records[-1]["validation"] == result["validation"]


def test_evaluation_of_a_run_repeats_its_numbers(run_folder, capsys):
    assert _run(run_folder, mode="eval") == 0
    result = json.loads((run_folder / "run" / "result.json").read_text())
    expected = f"accuracy {result['test']['accuracy']:.4f}"
    assert f"test: {expected}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.txt", "the film is good\nit was bad\n"),
        ("x.jsonl", '{"sentence": "good"}\n{"sentence": "bad"}\n'),
        ("x.csv", 'sentence\n"good, really"\nbad\n'),
        ("x.tsv", "sentence\ngood\nbad\n"),
    ],
)
def test_predictions(run_folder, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    options = {"input": str(tmp_path / name), "output": str(tmp_path / "out")}
    assert _run(run_folder, mode="predict", **options) == 0
    lines = (tmp_path / "out").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 2 and "good" in rows[0]["sentence"]
    for row in rows:
        assert row["label"] in tasks.get("demo_sentiment").labels
        assert abs(sum(row["probabilities"].values()) - 1) < 1e-4


def test_a_task_of_ones_own_from_a_file(tmp_path):
    rows = "".join(f"text {i},{'bad' if i % 2 else 'good'}\n" for i in range(8))
    for name in ("train.csv", "dev.csv"):
        (tmp_path / name).write_text("sentence,label\n" + rows)
    (tmp_path / "mine.yaml").write_text(
        "name: mine\ntext_fields: [sentence]\nlabels: [bad, good]\n"
        "head: classification\nmetrics: [accuracy]\n"
        "files: {train: train.csv, validation: dev.csv}\n"
    )
    settings = {
        "encoder": ENCODER,
        "method": "head_only",
        "data": {"task_file": str(tmp_path / "mine.yaml"), "max_length": 16},
        "train": {"epochs": 1},
    }
    assert _run(tmp_path, settings) == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["task"] == "mine"


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({"task": "sst3"}, {}, "Did you mean `sst2`"),
        ({"task": "sst2", "method": "houlsbi"}, {}, "Did you mean `houlsby`"),
        (
            {"task": "sst2"},
            {"params_override": ["train.learning_rat=1"]},
            "Did you mean `learning_rate`",
        ),
        (
            {"task": "sst2", "data": {"data_dir": "nowhere"}},
            {},
            "No data of task `sst2` in nowhere",
        ),
        ({**SMALL, "encoder": "minilmm"}, {}, "Did you mean minilm"),
        ({}, {"mode": "eval", "model_dir": "nowhere"}, "no run folder"),
        ({}, {"mode": "export", "model_dir": None}, "needs --model_dir"),
        ({"task": "sst2"}, {"config_file": "no.yaml"}, "Cannot read no.yaml"),
        ({}, {}, "`task` is missing"),
        ({**SMALL, "data": {"max_length": 900}}, {}, "Lower --max_length"),
        ({}, {"params_override": ["method.units=8"]}, "`task` is missing"),
    ],
)
def test_mistakes_end_in_one_sentence(
    settings, options, message, tmp_path, capsys
):
    assert _run(tmp_path, settings, **options) == 1
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_a_truncated_adapter_is_named(run_folder, capsys):
    path = run_folder / "run" / "adapter" / "adapter.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    try:
        assert _run(run_folder, mode="eval") == 1
    finally:
        path.write_bytes(whole)
    assert "truncated or damaged" in capsys.readouterr().err


def test_an_adapter_of_other_labels_is_refused(run_folder, capsys):
    settings = {"task": "demo_acceptability"}
    assert _run(run_folder, settings, mode="eval") == 1
    assert "Give the task it was trained on" in capsys.readouterr().err


def test_a_new_run_removes_what_the_old_one_left(tmp_path):
    old = tmp_path / "run" / "adapter"
    old.mkdir(parents=True)
    (tmp_path / "run" / "result.json").write_text("{}")
    settings = config_lib.merge(SMALL, {"train": {"learning_rate": 1e30}})
    assert _run(tmp_path, settings) in (0, 1)
    assert (tmp_path / "run" / "config.yaml").exists()
    result = tmp_path / "run" / "result.json"
    assert not result.exists() or result.read_text() != "{}"


def test_prediction_without_an_input(run_folder, capsys):
    assert _run(run_folder, mode="predict") == 1
    assert "needs --input" in capsys.readouterr().err


def test_tables_name_everything():
    assert all(name in tables.list_tasks() for name in tasks.TASKS)
    for name in config_lib.preset_names():
        assert name in tables.list_methods()
    assert "minilm" in tables.list_encoders()
