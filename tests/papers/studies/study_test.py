"""Tests the command for studies: runs, tables, exit status; one real study."""

import csv
import os
import pathlib
import signal
import subprocess
import sys
import time
import types

import pytest

from tests.fixtures import studies
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import plugins
from tf_adapters.launch import local_runner
from tf_adapters.papers.studies import study as study_lib

ROOT = pathlib.Path(__file__).parents[3]


def _run(options, flag_layer=None, score=studies.score):
    runner = studies.FakeRunner(score)
    layer = flag_layer or {"data": {}, "train": {}}
    return study_lib.run_studies(options, layer, runner), runner.seen


def test_a_study_ends_in_tables(tmp_path, capsys):
    path = studies.write(tmp_path)
    status, seen = _run(studies.options(path))
    assert status == 0 and len(seen) == 12
    folder = tmp_path / "runs" / "demo"
    assert {p.name for p in folder.iterdir()} == {
        "table.md",
        "table.csv",
        "table.tex",
        "runs.csv",
        "claims.csv",
        "report.html",
        *seen,
    }
    # Seeds score 0.00, 0.01 and 0.04 above 0.8 (SST-2) and 0.7 (CoLA).
    row = "| houlsby | 1 % | 81.7 ± 2.1 | 71.7 ± 2.1 | 76.7 |"
    assert row in studies.squeezed((folder / "table.md").read_text())
    assert row in studies.squeezed(capsys.readouterr().out)


def test_one_more_seed_trains_only_that_seed(tmp_path):
    grid = {**studies.STUDY["grid"], "seed": [0]}
    path = studies.write(tmp_path, grid=grid)
    assert len(_run(studies.options(path))[1]) == 4
    studies.write(tmp_path)
    _, seen = _run(studies.options(path))
    assert len(seen) == 8 and not any("-seed0-" in name for name in seen)


def test_report_trains_nothing(tmp_path):
    path = studies.write(tmp_path)
    with pytest.raises(ConfigError, match="Leave --report out"):
        _run(studies.options(path, report=True))
    grid = {**studies.STUDY["grid"], "seed": [0]}
    _run(studies.options(studies.write(tmp_path, grid=grid)))
    studies.write(tmp_path)
    status, seen = _run(studies.options(path, report=True))
    assert status == 0 and seen == []
    text = (tmp_path / "runs" / "demo" / "table.md").read_text()
    assert "8 of 12 runs are missing" in text


def test_data_may_lie_elsewhere_for_the_report(tmp_path):
    path = studies.write(tmp_path)
    layer = {"data": {"data_dir": "/some/data"}, "train": {}}
    _run(studies.options(path), layer)
    assert _run(studies.options(path, report=True))[0] == 0
    text = (tmp_path / "runs" / "demo" / "table.md").read_text()
    assert "missing" not in text
    command = text.split("`")[1]
    assert "--params_override=data.data_dir=/some/data" in command
    assert f"--model_dir={tmp_path / 'runs'}" in command


def test_flags_reach_the_runs_and_the_command_that_is_shown(tmp_path):
    path = studies.write(tmp_path)
    config_file = tmp_path / "settings.yaml"
    config_file.write_text("train: {clip_norm: 3.0, batch_size: 3}")
    seen = []

    def score(config):
        seen.append((config.train.clip_norm, config.train.batch_size))
        return studies.score(config)

    options = studies.options(
        path,
        config_file=str(config_file),
        params_override=["train.batch_size=5"],
    )
    _run(options, score=score)
    assert set(seen) == {(3.0, 5)}
    text = (tmp_path / "runs" / "demo" / "table.md").read_text()
    assert f"`tf-adapters --study={path} " in text
    assert "--params_override=train.batch_size=5" in text


def test_small_has_a_folder_of_its_own(tmp_path):
    path = studies.write(tmp_path)
    _, seen = _run(studies.options(path, small=True))
    assert len(seen) == 4
    text = (tmp_path / "runs" / "demo_small" / "table.md").read_text()
    assert "--small" in text


def test_runs_are_shared_with_the_studies_next_to_it(tmp_path):
    _run(studies.options(studies.write(tmp_path)))
    grid = {**studies.STUDY["grid"], "seed": [2, 3]}
    path = studies.write(tmp_path, "other", grid=grid)
    status, seen = _run(studies.options(path))
    assert status == 0 and len(seen) == 4
    folder = tmp_path / "runs" / "other"
    with (folder / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    folders = {row["seed"]: row["folder"] for row in rows}
    assert folders["2"].startswith("../demo/cola-")
    assert folders["3"] == rows[-1]["run"]
    for row in rows:
        assert (folder / row["folder"] / "result.json").exists()


def test_a_failed_run_shows_in_tables_and_exit_status(tmp_path, capsys):
    def score(config):
        if config.task == "cola" and config.seed == 1:
            return ValueError("the loss is NaN")
        return studies.score(config)

    path = studies.write(tmp_path)
    status, seen = _run(studies.options(path), score=score)
    assert status == 1 and len(seen) == 12
    out = capsys.readouterr().out
    assert out.count("Failed: cola-") == 2
    assert "the loss is NaN" in out and "log.txt" in out
    with (tmp_path / "runs" / "demo" / "runs.csv").open() as file:
        states = [row["state"] for row in csv.DictReader(file)]
    assert states.count("failed") == 2 and states.count("finished") == 10


def test_nothing_finished_says_why(tmp_path):
    path = studies.write(tmp_path)
    with pytest.raises(
        ConfigError, match="12 failed, the first one with: .*no data"
    ):
        _run(studies.options(path), score=lambda config: ValueError("no data"))


def test_a_report_of_nothing_says_where_there_is_something(tmp_path):
    path = studies.write(tmp_path)
    report = studies.options(path, report=True)
    with pytest.raises(ConfigError, match="Leave --report out"):
        _run(report)
    _run(studies.options(path, small=True))
    with pytest.raises(ConfigError, match="demo_small has a report: add --sm"):
        _run(report)
    own = str(tmp_path / "runs" / "demo_small")
    options = studies.options(path, report=True, small=True, model_dir=own)
    with pytest.raises(
        ConfigError, match="demo_small is the folder of a study"
    ):
        _run(options)


def test_a_study_file_that_is_not_there(tmp_path):
    path = tmp_path / "nowhere.yaml"
    with pytest.raises(ConfigError, match="There is no study file .*nowhere"):
        _run(studies.options(path))


def test_termination_stops_the_study_and_the_next_call_goes_on(tmp_path):
    path = studies.write(tmp_path)
    calls = []

    def score(config):
        calls.append(config)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.5)
        return studies.score(config)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(local_runner.Terminated) as stopped:
        _run(studies.options(path), score=score)
    assert stopped.value.exit_status == 75
    assert signal.getsignal(signal.SIGTERM) is before
    finished = len(list((tmp_path / "runs" / "demo").glob("*/result.json")))
    assert 2 <= finished < 12
    status, seen = _run(studies.options(path))
    assert status == 0 and len(seen) == 12 - finished


@pytest.mark.slow
def test_a_real_study_survives_a_kill(tmp_path):
    path = studies.write(
        tmp_path,
        base={
            "task": "demo_sentiment",
            "encoder": "minilm",
            "data.max_train_examples": 64,
            "data.max_length": 16,
            "train.epochs": 1,
        },
        grid={"method": ["head_only", "houlsby"], "seed": [0]},
        where=None,
    )
    command = [sys.executable, str(ROOT / "train.py"), f"--study={path}"]
    command.append(f"--model_dir={tmp_path / 'runs'}")
    folder = tmp_path / "runs" / "demo"
    # A session of its own, so that the kill takes the run along.
    process = subprocess.Popen(command, start_new_session=True)
    deadline = time.monotonic() + 300
    while not list(folder.glob("*houlsby*/config.yaml")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    (first,) = folder.glob("*/result.json")
    written = first.stat().st_mtime_ns
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "2 runs, 1 of them finished" in output.stdout
    assert first.stat().st_mtime_ns == written
    table = studies.squeezed((folder / "table.md").read_text())
    assert "| houlsby |" in table and "| head_only |" in table
    assert "missing" not in table


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_dir": "gs://bucket/studies"}, "is an address"),
        ({"overwrite": True}, "keeps what is finished"),
    ],
)
def test_what_a_study_cannot_do(tmp_path, options, message):
    path = studies.write(tmp_path)
    with pytest.raises(ConfigError, match=message):
        _run(studies.options(path, **options))


def test_the_command_that_is_shown_names_the_plugins(tmp_path, monkeypatch):
    monkeypatch.setattr(plugins, "_LOADED", [tmp_path / "mine.py"])
    path = studies.write(tmp_path)
    _run(studies.options(path))
    text = (tmp_path / "runs" / "demo" / "table.md").read_text()
    assert f" --plugin={tmp_path / 'mine.py'}`" in text


def test_results_of_other_data_are_named(tmp_path, capsys):
    path = studies.write(tmp_path)
    for folder in ("/some/data", "/other/data"):
        _run(studies.options(path), {"data": {"data_dir": folder}, "train": {}})
    printed = capsys.readouterr().out
    assert printed.count("but it read its data from /some/data") == 12


def test_an_empty_section_of_a_file_sets_nothing(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("train:\n  # epochs: 3\ndata: {max_length: 16}\n")
    options = types.SimpleNamespace(config_file=path, params_override=[])
    assert study_lib._flags(options, {}) == {"data.max_length": 16}
