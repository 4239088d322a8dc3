"""Tests commands from flags to files, and error messages for mistakes."""

import json
import os
import shutil
import subprocess
import sys
import types

import pytest

from tests import commands
from tests.cli import subcommands
from tests.fixtures import huggingface_folders
from tests.fixtures import make_earlier_runs
from tf_adapters import tasks
from tf_adapters.cli import errors as cli_errors
from tf_adapters.cli import lists
from tf_adapters.cli import main as cli_main
from tf_adapters.cli import option_checks
from tf_adapters.cli import train as cli_train
from tf_adapters.config import presets
from tf_adapters.config import resolve

pytestmark = pytest.mark.integration

ENCODER = str(huggingface_folders.ONE_BLOCK)


def _run(tmp_path, settings=None, model_dir="run", **options):
    """Returns the exit status of a command."""
    model_dir = None if model_dir is None else tmp_path / model_dir
    return commands.run(model_dir, settings, **options)


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
    assert resolve.load_config(run / "config.yaml").encoder == ENCODER
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


def test_evaluation_may_quantize_the_encoder(run_folder, capsys):
    assert _run(run_folder, {"quantize": "int4"}, mode="eval") == 0
    assert "test: accuracy" in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_on_a_quantized_encoder(run_folder, tmp_path, capsys):
    assert _run(tmp_path, {**SMALL, "quantize": "int8"}) == 0
    found, floats = (
        json.loads((folder / "run" / "result.json").read_text())
        for folder in (tmp_path, run_folder)
    )
    assert found["encoder_weights"] == floats["encoder_weights"]
    assert floats["encoder_bytes"] == 4 * floats["encoder_weights"]
    assert found["encoder_bytes"] < floats["encoder_bytes"] / 2
    assert _run(tmp_path, mode="eval") == 0
    expected = f"test: accuracy {found['test']['accuracy']:.4f}"
    assert expected in capsys.readouterr().out
    assert _run(tmp_path, {"quantize": "int4"}, mode="eval") == 1
    message = capsys.readouterr().err
    assert "quantized to int8, but this one is int4" in message


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


@pytest.fixture
def own_task(tmp_path, monkeypatch):
    """Changes to a folder with data and a task file of another name."""
    folder = tmp_path / "project"
    folder.mkdir()
    rows = "".join(f"text {i},{'bad' if i % 2 else 'good'}\n" for i in range(8))
    for name in ("train.csv", "dev.csv"):
        (folder / name).write_text("sentence,label\n" + rows)
    (folder / "file.yaml").write_text(
        "name: mine\ntext_fields: [sentence]\nlabels: [bad, good]\n"
        "head: classification\nmetrics: [accuracy]\n"
        "files: {train: train.csv, validation: dev.csv}\n"
    )
    (folder / "own.yaml").write_text("data: {task_file: file.yaml}\n")
    (folder / "texts.txt").write_text("one\ntwo\n")
    monkeypatch.chdir(folder)
    return folder


OWN = {
    "encoder": ENCODER,
    "method": "head_only",
    "data": {"max_length": 16},
    "train": {"epochs": 1},
}
BY_FLAG = {"data": {"task_file": "file.yaml"}}


@pytest.mark.slow
def test_a_run_of_ones_own_task_is_used_from_anywhere_without_its_data(
    own_task, tmp_path, monkeypatch, capsys
):
    shutil.copytree(ENCODER, own_task / "encoder")
    settings = resolve.merge(OWN, {**BY_FLAG, "encoder": "encoder"})
    assert _run(tmp_path, settings) == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["task"] == "mine"
    monkeypatch.chdir(tmp_path)
    assert _run(tmp_path, mode="eval") == 0
    for name in ("train.csv", "dev.csv"):
        (own_task / name).unlink()
    assert _run(tmp_path, mode="eval") == 1
    assert "split `train` does not exist" in capsys.readouterr().err
    texts = str(own_task / "texts.txt")
    assert _run(tmp_path, mode="predict", input=texts) == 0
    predictions = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["sentence"] for line in predictions] == [
        "one",
        "two",
    ]
    assert _run(tmp_path, mode="export") == 0
    assert (tmp_path / "run" / "export" / "mine" / "1").is_dir()


@pytest.mark.parametrize(
    "options",
    [
        {"config_file": "own.yaml"},
        {"params_override": ["data.task_file=file.yaml"]},
    ],
    ids=["config_file", "params_override"],
)
def test_a_task_file_need_not_be_a_flag(own_task, tmp_path, options):
    options = {"mode": "train", "model_dir": None, **options}
    arguments = {"config_file": None, "params_override": [], **options}
    by_flag = {**arguments, "config_file": None, "params_override": []}
    resolved = [
        cli_main._resolve(
            resolve.merge({"data": {}, "train": {}}, settings),
            types.SimpleNamespace(**chosen),
        )
        for settings, chosen in (
            (OWN, arguments),
            (resolve.merge(OWN, BY_FLAG), by_flag),
        )
    ]
    assert resolved[0] == resolved[1]
    config, model_dir = resolved[0]
    assert config.task == "mine"
    assert str(model_dir) == "runs/mine_head_only_0"


def test_prediction_takes_the_labels_from_the_adapter(
    tmp_path, monkeypatch, capsys
):
    """The classes of this task come from its training file."""
    folder = tmp_path / "data" / "cf_emotion"
    folder.mkdir(parents=True)
    names = ("anger", "joy", "love")
    for split in ("train", "dev"):
        rows = [{"text": f"a {name}", "label": name} for name in names]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(lines)
    data = {**OWN["data"], "data_dir": str(tmp_path / "data")}
    settings = {**OWN, "task": "cf_emotion", "data": data}
    assert _run(tmp_path, settings) == 0
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "texts.txt").write_text("so it is\n")
    capsys.readouterr()
    texts = str(tmp_path / "texts.txt")
    assert _run(tmp_path, mode="predict", input=texts) == 0
    row = json.loads(capsys.readouterr().out)
    assert tuple(row["probabilities"]) == names
    assert _run(tmp_path, mode="eval") == 1
    assert "No data of task `cf_emotion`" in capsys.readouterr().err


# Fails without data, and prints the modules imported so far.
_WITHOUT_DATA = """
import sys
from tests import commands
from tf_adapters.common import network
network.answers = lambda *hosts: False
settings = {"task": "mnli", "method": "pfeiffer"}
status = commands.run(None, settings, mode="train")
print(status, *{name.partition(".")[0] for name in sys.modules})
"""


def test_missing_data_is_reported_before_anything_heavy_is_imported(tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", _WITHOUT_DATA],
        env={**os.environ, "TFDS_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Task `mnli` needs `glue/mnli`" in result.stderr
    assert "--data_dir" in result.stderr and "TFDS_DATA_DIR" in result.stderr
    status, *modules = result.stdout.split()
    assert status == "1" and "tf_adapters" in modules
    heavy = {"keras", "keras_hub", "tensorflow", "scipy", "sklearn"}
    heavy.add("tensorflow_datasets")
    assert not heavy & set(modules)


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({"task": "sst3"}, {}, "Did you mean `sst2`"),
        (
            {"task": "sst2", "data": {"data_dir": "nowhere"}},
            {},
            "nowhere. Expected ",
        ),
        ({**SMALL, "encoder": "minilmm"}, {}, "Did you mean `minilm`"),
        ({}, {"mode": "eval", "model_dir": "nowhere"}, "not a run folder"),
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


def test_a_misspelled_run_folder_names_one_that_is_there(tmp_path, capsys):
    (tmp_path / "reviews").mkdir()
    (tmp_path / "reviews/config.yaml").write_text("{}")
    assert _run(tmp_path, model_dir="reviewz", mode="eval") == 1
    error = capsys.readouterr().err
    assert f"Did you mean `{tmp_path}/reviews`?" in error


def test_an_adapter_of_other_labels_is_refused(run_folder, capsys):
    settings = {"task": "demo_acceptability"}
    assert _run(run_folder, settings, mode="eval") == 1
    assert "Give the task it was trained on" in capsys.readouterr().err


def test_an_adapter_of_another_kind_is_refused(run_folder, tmp_path, capsys):
    (tmp_path / "x.csv").write_text("sentence1,sentence2\na,b\n")
    options = {"mode": "predict", "input": str(tmp_path / "x.csv")}
    assert _run(run_folder, {"task": "stsb"}, **options) == 1
    error = capsys.readouterr().err
    assert "is a regression" in error and "trained on" in error


@pytest.mark.parametrize(
    ("override", "name"),
    [
        ("method.units=3", "method.units"),
        ("method=pfeiffer", "method"),
        ("train.learning_rate=7", "train.learning_rate"),
        ("head.reads=pooled_output", "head.reads"),
        ("data.max_train_examples=3", "data.max_train_examples"),
        ("pretrain.steps=5", "pretrain.steps"),
        ("search.space={units: [3]}", "search.space.units"),
        ("seed=3", "seed"),
    ],
)
def test_a_setting_that_is_the_runs_own_is_refused(
    run_folder, capsys, override, name
):
    assert _run(run_folder, mode="export", params_override=[override]) == 1
    expected = f"--mode=export takes `{name}` from the run"
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    "settings",
    [
        SMALL,
        {"method": "houlsby_code"},  # Another preset of its method.
        {"head": {"reads": "first_token"}},
    ],
    ids=["again", "preset", "default"],
)
def test_what_the_run_has_may_be_said_again(run_folder, settings):
    options = {"mode": "eval", "model_dir": str(run_folder / "run")}
    options |= {"config_file": None, "params_override": []}
    settings = resolve.merge({"data": {}, "train": {}}, settings)
    config, _ = cli_main._resolve(settings, types.SimpleNamespace(**options))
    assert config.method.units == 64


def test_a_threshold_is_that_of_the_command(own_task, tmp_path, capsys, caplog):
    (own_task / "file.yaml").write_text(
        "{name: mine, text_fields: [sentence], labels: [bad, good], "
        "head: multilabel, files: {train: train.jsonl, validation: dev.jsonl}}"
    )
    for name in ("train.jsonl", "dev.jsonl"):
        rows = [{"sentence": f"text {i}", "label": ["bad"]} for i in range(8)]
        commands.write_rows(own_task / name, rows)
    assert _run(tmp_path, resolve.merge(OWN, BY_FLAG)) == 0
    assert "train: a batch of 32 holds all 8 examples" in caplog.text
    options = {"mode": "predict", "input": str(own_task / "texts.txt")}
    for threshold, labels in ((0.99, []), (0.01, ["bad", "good"])):
        override = [f"head.threshold={threshold}"]
        capsys.readouterr()
        assert _run(tmp_path, params_override=override, **options) == 0
        lines = capsys.readouterr().out.splitlines()
        assert all(json.loads(line)["labels"] == labels for line in lines)


def test_a_finished_run_is_not_trained_again_unasked(run_folder, capsys):
    weights = run_folder / "run" / "adapter" / "adapter.safetensors"
    written = weights.stat().st_mtime_ns
    assert _run(run_folder, SMALL) == 0
    printed = capsys.readouterr().out
    assert "finished; --overwrite" in printed
    assert "test split was not" not in printed
    assert weights.stat().st_mtime_ns == written


def test_a_run_that_was_only_trained_says_how_to_test_it():
    options = types.SimpleNamespace(mode="train_and_eval")
    result = {"best_step": 1, "data_fingerprint": {"test": "1"}}
    assert cli_train._lacks_test(result, options)
    assert not cli_train._lacks_test({**result, "test": {"f1": 1.0}}, options)
    assert not cli_train._lacks_test({"best_step": 1}, options)
    assert not cli_train._lacks_test(
        result, types.SimpleNamespace(mode="train")
    )


def test_a_users_own_settings_are_not_replaced(tmp_path, capsys):
    path = tmp_path / "run" / "config.yaml"
    path.parent.mkdir()
    path.write_text("# My notes.\ntask: demo_sentiment\nmethod: lora\n")
    before = path.read_bytes()
    assert _run(tmp_path, SMALL, config_file=str(path)) == 1
    assert "such as settings.yaml" in capsys.readouterr().err
    assert path.read_bytes() == before
    for name in ("log.txt", ".lock", "metrics.jsonl", "result.json"):
        (path.parent / name).touch()  # So it is a run's.
        option_checks.check_keeps_file(str(path), path.parent)
        (path.parent / name).unlink()


def test_a_folder_of_another_run_is_refused_and_the_difference_said(
    run_folder, capsys
):
    settings = resolve.merge(SMALL, {"train": {"learning_rate": 0.5}})
    assert _run(run_folder, settings) == 1
    error = capsys.readouterr().err
    assert "  train.learning_rate: 0.0003 there, 0.5 now" in error
    assert error.count(" there, ") == 1 and "--overwrite" in error


@pytest.mark.slow
def test_overwriting_removes_what_the_old_run_left(run_folder, tmp_path):
    shutil.copytree(run_folder / "run", tmp_path / "run")
    settings = resolve.merge(SMALL, {"train": {"learning_rate": 1e30}})
    assert _run(tmp_path, settings, overwrite=True) in (0, 1)
    result = tmp_path / "run" / "result.json"
    old = (run_folder / "run" / "result.json").read_text()
    assert not result.exists() or result.read_text() != old


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder": "minilmm"}, "Did you mean `minilm`"),
        ({"data": {"max_length": 900}}, "Lower --max_length"),
        ({"init_adapter": "{run}"}, "holds the adapter"),
    ],
    ids=["encoder", "max_length", "init_adapter"],
)
def test_overwriting_removes_nothing_where_the_new_run_cannot_start(
    run_folder, tmp_path, capsys, settings, message
):
    run = tmp_path / "run"
    shutil.copytree(run_folder / "run", run)
    if "init_adapter" in settings:
        settings = {"init_adapter": str(run)}
    settings = resolve.merge(SMALL, settings)
    assert _run(tmp_path, settings, overwrite=True) == 1
    assert message in capsys.readouterr().err
    assert (run / "result.json").exists() and (run / "adapter").exists()


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        ({"small": True}, "--study"),
        ({"report": True}, "--study"),
        ({"executor": "ray"}, "--study"),
        ({"study": "he2021_figure8", "ray_cpus": 2}, "--executor=ray"),
        ({"input": "x.txt"}, "--mode=predict"),
        ({"study": "he2021_figure8", "output": "x.csv"}, "--mode=predict"),
        ({"mode": "eval", "with_head": False}, "--mode=export"),
        ({"mode": "predict", "input": "x", "format": "peft"}, "--mode=export"),
        (
            {"mode": "export", "format": "onnx", "with_head": False},
            "--format=adapterhub or --format=peft",
        ),
    ],
)
def test_an_option_that_nothing_would_read_is_refused(
    tmp_path, capsys, options, needed
):
    assert _run(tmp_path, SMALL, **options) == 1
    assert f"an effect only with {needed}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_flags_about_a_table_need_one(tmp_path, capsys):
    settings = resolve.merge(SMALL, {"data": {"test_file": "x", "text": ["a"]}})
    assert _run(tmp_path, settings) == 1
    said = capsys.readouterr().err
    assert "--text, --test has an effect only with a table, --data" in said
    assert not list(tmp_path.iterdir())


def test_prediction_without_an_input(run_folder, capsys):
    assert _run(run_folder, mode="predict") == 1
    assert "needs --input" in capsys.readouterr().err


def test_an_export_that_cannot_be_written_names_the_path(
    run_folder, tmp_path, capsys
):
    shutil.copytree(run_folder / "run", tmp_path / "run")
    place = tmp_path / "run" / "export"
    place.write_text("a file in place of the folder")
    assert _run(tmp_path, mode="export") == 1
    assert f"Error: {place} is a file, but a folder" in capsys.readouterr().err


def test_a_submission_of_another_task_is_refused_in_a_sentence(
    run_folder, tmp_path, capsys
):
    options = {"mode": "predict", "glue_submission": str(tmp_path)}
    assert _run(run_folder, **options) == 1
    assert "predictions for its own tasks" in capsys.readouterr().err


def test_a_submission_is_of_the_tasks_own_test_set(
    run_folder, tmp_path, capsys
):
    options = {"mode": "predict", "glue_submission": str(tmp_path)}
    assert _run(run_folder, input="texts.txt", **options) == 1
    assert "leave --input out" in capsys.readouterr().err


def test_tables_name_everything():
    assert all(name in lists.list_tasks() for name in tasks.TASKS)
    for name in presets.preset_names():
        assert name in lists.list_methods()
    assert "minilm" in lists.list_encoders()


def test_an_export_of_several_adapters_needs_them(tmp_path, capsys):
    runs = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert _run(tmp_path, mode="export", adapters=runs) == 1
    assert "is not a run folder" in capsys.readouterr().err


def test_a_mistyped_run_is_not_a_place_for_its_adapters(tmp_path, capsys):
    gone = str(tmp_path / "gone")
    assert subcommands.run("export", gone, "--adapters=a,b") == 1
    assert f"{gone} holds no run. To export several" in capsys.readouterr().err


def test_another_librarys_format_is_of_one_adapter(tmp_path, capsys):
    options = {"mode": "export", "adapters": ["a", "b"], "format": "peft"}
    assert _run(tmp_path, **options) == 1
    assert (
        "--format=peft writes the adapter of one run" in capsys.readouterr().err
    )


def test_paths_may_be_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    shutil.copytree(make_earlier_runs.FOLDER / "first", tmp_path / "a")
    (tmp_path / "b.yaml").write_text("stack_on: ~/a\n")
    options = types.SimpleNamespace(config_file="~/b.yaml", params_override=[])
    layers = cli_main.layers_of_command({"task": "sst2"}, options)
    cli_main._check_stack(layers)
    config = resolve.combine(*layers)
    config = cli_main._with_encoder_of_adapters(config, layers)
    assert config.encoder == "{encoder}"


def test_a_missing_folder_to_stack_on_is_reported_at_once(tmp_path, capsys):
    settings = {"task": "demo_sentiment", "encoder": "e", "stack_on": "nowhere"}
    assert commands.run(tmp_path / "run", settings) == 1
    assert "there is no such folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"train": {"precision": "mixed_bfloat16"}}, {}),
        ({}, {"params_override": ["method.leave_out=[0]"]}),
        ({"data": {"max_length": 64}}, {}),
        ({"seed": 0}, {}),
        ({"method": {"name": "houlsby", "adapters": ["a", "b"]}}, {}),
    ],
)
def test_a_model_of_many_tasks_takes_no_settings(
    tmp_path, capsys, settings, options
):
    options = {"mode": "export", "adapters": ["a", "b"], **options}
    assert _run(tmp_path, settings, **options) == 1
    assert "takes all settings from the runs" in capsys.readouterr().err


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch, tmp_path):
    def broken(*arguments):
        raise ValueError("zip() argument 2 is longer")

    monkeypatch.setattr(cli_main, "_resolve", broken)
    with pytest.raises(ValueError, match="zip") as caught:
        cli_errors.exit_status(_run, tmp_path)
    assert caught.value.__notes__ == [cli_errors.FAULT]


def test_a_reader_that_has_seen_enough():
    done = subprocess.run(
        f"{sys.executable} -m tf_adapters --list=tasks | head -1; "
        "echo ${PIPESTATUS[0]}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
    )
    assert "Broken pipe" not in done.stderr and "Traceback" not in done.stderr
    # The command may have written everything before the reader ended.
    assert len(done.stdout.splitlines()) == 2
    assert done.stdout.splitlines()[1] in ("0", "141")


def test_a_command_that_nobody_reads_has_not_succeeded():
    done = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import os, sys; from tf_adapters.cli import errors\n"
            "def write():\n"
            "    os.dup2(os.open('/dev/null', os.O_RDONLY), 0)\n"
            "    raise BrokenPipeError\n"
            "sys.exit(errors.exit_status(write))",
        ],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (141, "", "")
