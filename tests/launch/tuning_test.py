"""Tests that a search tries settings, resumes, and survives failed trials."""

import json
from pathlib import Path
import re
import sys

import pytest

from tests import commands
from tests.cli import subcommands
import tf_adapters
from tf_adapters.common import errors
from tf_adapters.launch import search_folder
from tf_adapters.runs import whole_run

pytestmark = pytest.mark.integration
pytest.importorskip("optuna")

METHODS = "head_only,lora"


def _table(folder):
    rows = [
        {"review": f"a film, {name} {i}", "topic": name}
        for name, count in {"Geschäft": 15, "Sport": 9}.items()
        for i in range(count)
    ]
    return commands.write_rows(folder / "news.jsonl", rows)


def _tune(folder, *flags, methods=METHODS):
    return subcommands.run(
        "tune",
        *(f"--data={_table(folder)}", "--text=review", "--label=topic"),
        *(f"--encoder={commands.ENCODER}", "--epochs=1", "--max_length=16"),
        *("--batch_size=8", f"--model_dir={folder}/tune"),
        *([f"--methods={methods}"] if methods else []),
        *flags,
    )


def _values(folder):
    paths = sorted((folder / "tune/trials").glob("*/result.json"))
    return {
        path.parent.name: json.loads(path.read_text())["validation"]["accuracy"]
        for path in paths
    }


def _settings(folder):
    paths = sorted((folder / "tune/trials").glob("*/trial.json"))
    return [json.loads(path.read_text())["settings"] for path in paths]


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """Makes a folder with a search of four trials."""
    folder = tmp_path_factory.mktemp("tune")
    test = commands.write_rows(folder / "test.jsonl", [{"review": "a"}])
    assert _tune(folder, "--trials=4", f"--test={test}") == 0
    return folder


def test_the_first_trials_are_the_methods_own_settings(searched):
    assert _settings(searched)[:2] == [
        {
            "method": {"name": "head_only"},
            "train": {"learning_rate": 0.01},
        },
        {"method": {"name": "lora"}, "train": {"learning_rate": 0.001}},
    ]


def test_no_trial_looks_at_the_test_set(searched):
    for path in (searched / "tune/trials").glob("*/result.json"):
        result = json.loads(path.read_text())
        assert "test" not in result
        assert set(result["data_fingerprint"]) == {"train", "validation"}


def test_the_best_is_the_best_on_validation(searched):
    best = json.loads((searched / "tune/best.json").read_text())
    values = _values(searched)
    assert len(values) == best["trials"] == 4 and not best["failed"]
    name = best["folder"].rpartition("/")[2]
    assert best["value"] == values[name] == max(values.values())
    assert int(name) == best["number"]


def test_a_finished_search_says_its_best_and_the_command_for_it(
    searched, capsys
):
    test = searched / "test.jsonl"
    assert _tune(searched, "--trials=4", f"--test={test}") == 0
    out = capsys.readouterr().out
    best = json.loads((searched / "tune/best.json").read_text())
    assert f"run: {best['folder']}" in out and "trial 1 of" not in out
    command = re.search(r"^command: tf-adapters train (.*)$", out, re.M)[1]
    assert f"--test={test}" in command
    commands.write_rows(test, [{"review": "a", "topic": "Sport"}])
    assert subcommands.run("train", *command.split()) == 0
    result = json.loads((searched / "tune/best/result.json").read_text())
    assert result["validation"]["accuracy"] == best["value"]
    assert "test" in result


def test_another_search_in_the_folder_is_refused(searched, capsys):
    assert _tune(searched, "--trials=4", "--batch_size=4") == 1
    error = capsys.readouterr().err
    assert "train.batch_size: 8 there, 4 now" in error
    assert "Give another --model_dir, or --overwrite" in error
    assert len(_values(searched)) == 4


class _Killed(BaseException):
    pass


def test_a_killed_search_resumes_with_the_same_trial(
    tmp_path, monkeypatch, capsys
):
    train, count = whole_run.train_run, iter(range(100))

    def killed_at_the_second(*arguments, **options):
        if next(count) == 1:
            raise _Killed
        return train(*arguments, **options)

    monkeypatch.setattr(whole_run, "train_run", killed_at_the_second)
    with pytest.raises(_Killed):
        _tune(tmp_path, "--trials=3")
    before = _settings(tmp_path)
    assert len(before) == 2 and list(_values(tmp_path)) == ["001"]
    assert _tune(tmp_path, "--trials=3") == 0
    assert _settings(tmp_path)[:2] == before
    assert list(_values(tmp_path)) == ["001", "002", "003"]
    assert "best of 3 trials: accuracy" in capsys.readouterr().out


def test_a_trial_whose_process_always_ends_is_given_up(
    tmp_path, monkeypatch, capsys
):
    def killed(*arguments, **options):
        raise _Killed

    monkeypatch.setattr(whole_run, "train_run", killed)
    for _ in range(3):
        with pytest.raises(_Killed):
            _tune(tmp_path, "--trials=1")
    assert _tune(tmp_path, "--trials=1") == 1
    said = capsys.readouterr()
    assert "trial 1 failed: its process ended 3 times" in said.out
    assert "All 1 trials failed" in said.err


def test_a_trial_may_be_stopped_as_often_as_one_likes(tmp_path, monkeypatch):
    def stopped(*arguments, **options):
        raise errors.Stopped("by SIGTERM")

    monkeypatch.setattr(whole_run, "train_run", stopped)
    for _ in range(5):
        assert _tune(tmp_path, "--trials=1") == 75


def test_a_trial_that_fails_says_so_and_the_search_goes_on(
    tmp_path, monkeypatch, capsys
):
    train, count = whole_run.train_run, iter(range(100))

    def failing_at_first(*arguments, **options):
        if next(count) == 0:
            raise RuntimeError("out of memory, say")
        return train(*arguments, **options)

    monkeypatch.setattr(whole_run, "train_run", failing_at_first)
    assert _tune(tmp_path, "--trials=2") == 0
    out = capsys.readouterr().out
    assert "trial 1 failed: out of memory, say" in out
    assert "best of 2 trials, of which 1 failed: accuracy" in out
    error = (tmp_path / "tune/trials/001/error.txt").read_text()
    assert "RuntimeError: out of memory, say" in error


def test_without_optuna_a_sentence_names_the_extra(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert _tune(tmp_path) == 1
    assert "pip install 'tf_adapters[search]'" in capsys.readouterr().err
    assert not (tmp_path / "tune").exists()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--methods=lora,loro"], "Did you mean `lora`?"),
        (["--methods=lora", "--method=lora"], "not both"),
        (["--methods=no_bert"], "`no_bert` trains a network of its own"),
        (["--label=topik"], "Did you mean `topic`?"),
        (["--model_dir=gs://a/b"], "must be on this machine"),
        (["more"], "takes flags only"),
        (["--params_override=backend=jax"], "Keras is already imported with"),
    ],
)
def test_mistakes(tmp_path, capsys, flags, sentence):
    assert _tune(tmp_path, *flags, methods=None) == 1
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "tune").exists()


def test_a_task_may_be_named_as_a_setting(tmp_path, capsys):
    """As for `train`."""
    named = f"--params_override=task=rte,data.data_dir={tmp_path}/nowhere"
    assert subcommands.run("tune", named, f"--model_dir={tmp_path}/tune") == 1
    assert "No data of task `rte`" in capsys.readouterr().err


def test_a_search_in_python(tmp_path):
    table = _table(tmp_path)
    rows = commands.read_rows(Path(table))
    model = tf_adapters.tune(
        rows,
        text="review",
        label="topic",
        trials=1,
        methods=["head_only"],
        encoder=commands.ENCODER,
        epochs=1,
        max_length=16,
        model_dir=tmp_path / "search",
        settings={"train.learning_rate": 0.5},
    )
    assert model.run_folder == tmp_path / "search/trials/001"
    assert commands.read_rows(tmp_path / "search/tables/table.jsonl") == rows
    assert subcommands.run("eval", model.run_folder) == 0
    state = json.loads((model.run_folder / "trial.json").read_text())
    assert state["settings"] == {"method": {"name": "head_only"}}
    assert (tmp_path / "search" / search_folder.BEST).exists()
