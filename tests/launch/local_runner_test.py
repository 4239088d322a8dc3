"""Tests which runs are started, skipped, repeated or locked, and failures."""

import shutil
import subprocess
import sys
import threading
import time

import pytest

from tests.fixtures import studies
from tf_adapters.config import resolve
from tf_adapters.launch import finished_runs
from tf_adapters.launch import local_runner
from tf_adapters.launch import planned_run
from tf_adapters.launch import process_runner

GRID = {"task": ["sst2"], "method": ["houlsby", "head_only"], "seed": [0, 1]}


@pytest.fixture
def runs(tmp_path):
    return studies.plan(tmp_path, grid=GRID)[1]


@pytest.fixture
def study_dir(tmp_path):
    """Not `tmp_path`: a study finds runs in the folders next to its own."""
    (tmp_path / "study").mkdir()
    return tmp_path / "study"


def _run_missing(runs, folder, score=studies.score, processes=1):
    runner = studies.FakeRunner(score)
    outcomes = local_runner.run_missing(runs, folder, runner, processes)
    return runner.seen, outcomes


def test_finished_runs_are_skipped(runs, study_dir, capsys):
    seen, _ = _run_missing(runs[:3], study_dir)
    assert seen == [run.id for run in runs[:3]]
    seen, _ = _run_missing(runs, study_dir)
    assert seen == [runs[3].id]
    assert "4 runs, 3 of them finished" in capsys.readouterr().out
    assert _run_missing(runs, study_dir)[0] == []


def test_a_run_of_another_study_is_taken(runs, study_dir, capsys):
    other = study_dir.parent / "other"
    _run_missing(runs[:2], other)
    seen, _ = _run_missing(runs, study_dir)
    assert seen == [run.id for run in runs[2:]]
    assert "2 of the finished ones come from other" in (capsys.readouterr().out)
    assert finished_runs.find_run(runs[0], study_dir) == other / runs[0].id
    assert finished_runs.find_run(runs[2], study_dir) == study_dir / runs[2].id
    assert not (study_dir / runs[0].id).exists()
    result = finished_runs.read_run_result(runs[0], study_dir)
    assert result["validation"] == {"accuracy": 0.8}


def test_its_own_run_comes_first(runs, study_dir):
    _run_missing(runs[:1], study_dir)
    shutil.copytree(study_dir, study_dir.parent / "a_study")
    assert finished_runs.find_run(runs[0], study_dir).parent == study_dir


def test_a_run_with_other_settings_is_not_taken(runs, study_dir):
    other = study_dir.parent / "other"
    _run_missing(runs[:1], other)
    resolve.save_config(runs[1].config, other / runs[0].id / "config.yaml")
    assert finished_runs.find_run(runs[0], study_dir) is None
    assert _run_missing(runs[:1], study_dir)[0] == [runs[0].id]


def test_a_run_that_another_study_finishes_meanwhile_is_taken(runs, study_dir):
    waiting = study_dir.parent / "elsewhere" / "other"
    _run_missing(runs[1:2], waiting)

    def score(config):
        shutil.move(waiting, study_dir.parent)
        return studies.score(config)

    seen, outcomes = _run_missing(runs[:2], study_dir, score)
    assert seen == [runs[0].id]
    assert outcomes[1].result and not (study_dir / runs[1].id).exists()


@pytest.mark.parametrize("same", [True, False])
def test_a_run_stopped_half_way_keeps_its_checkpoints(runs, study_dir, same):
    """Checkpoints with other settings belong to another run and are removed."""
    folder = study_dir / runs[0].id
    (folder / "checkpoints").mkdir(parents=True)
    for name in ("error.txt", "log.txt"):
        (folder / name).write_text("half of i")
    resolve.save_config(runs[1 - same].config, folder / "config.yaml")
    seen, _ = _run_missing(runs[:1], study_dir)
    assert seen == [runs[0].id]
    names = {path.name for path in folder.iterdir()} - {"checkpoints"}
    assert names == {"config.yaml", "result.json", "log.txt"}
    assert (folder / "checkpoints").exists() == same
    assert (folder / "log.txt").read_text() == ""


def test_a_result_of_another_configuration_is_neither_taken_nor_removed(
    runs, study_dir
):
    """For example, if the project and the paths in its settings moved."""
    _run_missing(runs[:1], study_dir)
    folder = study_dir / runs[0].id
    resolve.save_config(runs[1].config, folder / "config.yaml")
    assert finished_runs.read_run_result(runs[0], study_dir) is None
    seen, (outcome,) = _run_missing(runs[:1], study_dir)
    assert seen == [] and outcome.result is None
    assert "finished run with other settings, data or paths" in outcome.error
    assert (folder / "result.json").exists()
    # What never finished gives way.
    (folder / "result.json").unlink()
    seen, _ = _run_missing(runs[:1], study_dir)
    assert seen == [runs[0].id]
    assert finished_runs.read_run_result(runs[0], study_dir) is not None


def test_a_failing_run_is_recorded_passed_over_and_tried_again(
    runs, study_dir, capsys
):
    def score(config):
        if config.seed == 0:
            return ValueError("no loss")
        return studies.score(config)

    seen, outcomes = _run_missing(runs, study_dir, score)
    assert len(seen) == 4
    expected = "exit status 1. Last line: Error: no loss"
    assert [o.error for o in outcomes] == [expected, "", expected, ""]
    assert finished_runs.read_error(runs[0], study_dir) == expected
    assert "FAILED, exit status 1" in capsys.readouterr().out
    seen, _ = _run_missing(runs, study_dir)
    assert seen == [runs[0].id, runs[2].id]
    assert finished_runs.read_error(runs[0], study_dir) == ""


def test_an_exit_without_a_result_is_a_failure(runs, study_dir):
    outcomes = local_runner.run_missing(
        runs[:1], study_dir, lambda config_file, folder, log: 0
    )
    assert "ended without a result.json" in outcomes[0].error


def test_each_run_has_a_line_with_number_metric_and_time_left(
    runs, study_dir, capsys
):
    _run_missing(runs[:1], study_dir)
    capsys.readouterr()
    _run_missing(runs, study_dir)
    lines = capsys.readouterr().out.split("\n")
    assert lines[1].startswith(f"[2 of 4] {runs[1].id}: accuracy 0.8100, 0 s")
    assert lines[1].endswith("left")
    assert lines[3].startswith("[4 of 4]") and not lines[3].endswith("left")


def test_runs_at_the_same_time(runs, study_dir):
    barrier = threading.Barrier(4, timeout=20)

    def score(config):
        barrier.wait()
        return studies.score(config)

    _, outcomes = _run_missing(runs, study_dir, score, processes=4)
    assert all(outcome.result for outcome in outcomes)


def test_a_run_that_another_study_trains_is_left_to_it(runs, study_dir):
    theirs = study_dir.parent / "other" / runs[0].id
    theirs.mkdir(parents=True)
    with (theirs / "log.txt").open("a") as log:
        assert local_runner._lock(log)
        seen, outcomes = _run_missing(runs[:2], study_dir)
    assert seen == [runs[1].id]
    assert [o.error for o in outcomes] == [local_runner.ELSEWHERE, ""]
    # It ended without a result.
    assert _run_missing(runs[:2], study_dir)[0] == [runs[0].id]


def test_a_log_that_cannot_be_opened_does_not_end_the_study(runs, study_dir):
    (study_dir.parent / "other" / runs[0].id / "log.txt").mkdir(parents=True)
    assert _run_missing(runs[:1], study_dir)[0] == [runs[0].id]


def test_another_run_of_the_same_name_is_not_waited_for(runs, study_dir):
    """As the members of two fusions with other settings."""
    theirs = study_dir.parent / "other" / runs[0].id
    theirs.mkdir(parents=True)
    resolve.save_config(runs[1].config, theirs / "config.yaml")
    with (theirs / "log.txt").open("a") as log:
        assert local_runner._lock(log)
        assert _run_missing(runs[:1], study_dir)[0] == [runs[0].id]


def test_a_run_that_outlived_its_study_is_left_alone(runs, study_dir):
    """Its process holds the lock on its log."""
    folder = study_dir / runs[0].id
    folder.mkdir()
    with (folder / "log.txt").open("a") as log:
        assert local_runner._lock(log)
        sleep = [sys.executable, "-c", "input()"]
        orphan = subprocess.Popen(sleep, stdout=log, stdin=subprocess.PIPE)
    try:
        seen, outcomes = _run_missing(runs[:1], study_dir)
        assert seen == []
        assert "another process" in outcomes[0].error
    finally:
        orphan.kill()
        orphan.communicate()
    assert _run_missing(runs[:1], study_dir)[0] == [runs[0].id]


PROGRAM = """
import json, os, pathlib, sys, time
flags = dict(flag[2:].split("=") for flag in sys.argv[1:])
assert os.path.exists(flags["config_file"])
print("threads", os.environ.get("TF_NUM_INTRAOP_THREADS"))
if "head_only" in flags["model_dir"]:
    sys.exit("Error: it was to be.")
if "SLEEP" in os.environ:
    time.sleep(60)
result = {"validation": {"accuracy": 0.5}}
pathlib.Path(flags["model_dir"], "result.json").write_text(json.dumps(result))
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_processes_get_the_flags_and_write_the_log(runs, tmp_path, program):
    runner = process_runner.ProcessRunner(1, [program])
    outcomes = local_runner.run_missing(
        [runs[0], runs[2]], tmp_path / "study", runner
    )
    assert outcomes[0].result == {"validation": {"accuracy": 0.5}}
    assert outcomes[1].error == (
        "exit status 1. Last line: Error: it was to be."
    )
    log = (tmp_path / "study" / runs[0].id / "log.txt").read_text()
    assert f"{program} --config_file=" in log.split("\n")[0]
    assert log.split("\n")[1] == "threads None"


def test_a_run_that_was_stopped_before_it_started_has_not_failed(
    runs, tmp_path, program
):
    runner = process_runner.ProcessRunner(1, [program])
    runner.stop()
    local_runner.run_missing(runs[:1], tmp_path / "study", runner)
    assert not (tmp_path / "study" / runs[0].id / "error.txt").exists()


def _write_table(path, labels):
    path.parent.mkdir(exist_ok=True)
    rows = [f"text {i},{labels[i % 2]}" for i in range(20)]
    path.write_text("\n".join(["text,label", *rows]))
    return path


def _run_of_table(path):
    settings = {"task": "train", "method": "pfeiffer"}
    config = resolve.resolve_config({**settings, "data": {"file": str(path)}})
    return planned_run.Run(planned_run.run_id(config), {}, config, {})


def test_a_run_of_another_table_with_the_same_name_is_not_taken(tmp_path):
    ours = _run_of_table(_write_table(tmp_path / "imdb/train.csv", "ab"))
    others = _run_of_table(_write_table(tmp_path / "yelp/train.csv", "ba"))
    moved = _run_of_table(_write_table(tmp_path / "moved/train.csv", "ab"))
    gone = _run_of_table(tmp_path / "gone/train.csv")
    empty = _run_of_table(_write_table(tmp_path / "empty/train.csv", ["", "a"]))
    assert ours.id == others.id
    path = tmp_path / "runs/imdb" / ours.id
    studies.finish(ours.config, path)
    for run, is_taken in (
        (ours, 1),
        (others, 0),
        (moved, 1),
        (gone, 1),
        (empty, 0),
    ):
        found = finished_runs.find_run(run, tmp_path / "runs/study")
        assert found == (path if is_taken else None)
        assert local_runner.is_finished_otherwise(run, path) != is_taken


def test_processes_share_the_cores(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    environment = process_runner.ProcessRunner(4).environment
    assert environment["TF_NUM_INTRAOP_THREADS"] == "2"


def test_an_interruption_ends_the_processes(
    runs, tmp_path, program, monkeypatch
):
    monkeypatch.setenv("SLEEP", "1")
    runner = process_runner.ProcessRunner(2, [program])

    def interrupted(futures):
        while len(runner._alive) < 2:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr("concurrent.futures.as_completed", interrupted)
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        local_runner.run_missing(runs[:2], tmp_path / "study", runner, 2)
    assert time.perf_counter() - started < 30
    assert not runner._alive
    assert finished_runs.read_run_result(runs[0], tmp_path / "study") is None


def test_a_log_takes_the_place_of_a_link(runs, study_dir, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    (study_dir / runs[0].id).mkdir()
    (study_dir / runs[0].id / "log.txt").symlink_to(tmp_path / "mine.txt")
    assert _run_missing(runs[:1], study_dir)[0] == [runs[0].id]
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_run_in_a_folder_that_is_a_link_fails_and_others_go_on(
    runs, study_dir, tmp_path
):
    (tmp_path / "elsewhere" / "else").mkdir(parents=True)
    (study_dir / runs[0].id).symlink_to(tmp_path / "elsewhere" / "else")
    seen, outcomes = _run_missing(runs[:2], study_dir)
    assert seen == [runs[1].id]
    assert "is a link to" in outcomes[0].error and not outcomes[1].error
    assert not any((tmp_path / "elsewhere" / "else").iterdir())
