"""Tests a study on Ray with two CPUs: results, and killed processes."""

import contextlib
import csv
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import types

import pytest
import ray

from tests import commands
from tests.fixtures import studies
from tf_adapters.common.errors import ConfigError
from tf_adapters.launch import local_runner
from tf_adapters.launch import process_runner
from tf_adapters.launch import ray_runner
from tf_adapters.launch import ray_task
from tf_adapters.papers.studies import study as study_lib

pytestmark = pytest.mark.integration

ROOT = pathlib.Path(__file__).parents[2]
GRID = {"task": ["sst2"], "method": ["houlsby", "head_only"], "seed": [0, 1]}

# Takes the lock of its folder as train.py does, and 1.5 seconds to save. What
# it does otherwise is in files next to its folder.
PROGRAM = """
import fcntl, json, os, pathlib, signal, sys, time

def stop(*_):
    time.sleep(1.5)
    (folder / "saved").touch()
    sys.exit(75)

flags = dict(flag[2:].split("=") for flag in sys.argv[1:])
assert os.path.exists(flags["config_file"])
folder = pathlib.Path(flags["model_dir"])
lock = (folder / ".lock").open("w")
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # Fails: two in one folder.
signal.signal(signal.SIGTERM, stop)
with (folder / "starts.txt").open("a") as file:
    file.write(f"{os.getpid()} {os.getppid()}\\n")
first = len((folder / "starts.txt").read_text().splitlines()) == 1
print("threads", os.environ["TF_NUM_INTRAOP_THREADS"])
if (folder.parent / "fail").exists() and "head_only" in folder.name:
    sys.exit("Error: it was to be.")
if (folder.parent / "stop").exists():
    sys.exit(75)
if (folder.parent / "sleep").exists() and first:
    time.sleep(600)
result = {"validation": {"accuracy": 0.5}}
(folder / "result.json").write_text(json.dumps(result))
"""


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    """Ray writes a token of the user's into the home folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="module")
def two_cpus():
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init("local", num_cpus=2, include_dashboard=False)
    yield
    ray.shutdown()


@pytest.fixture
def runs(tmp_path):
    return studies.plan(tmp_path, grid=GRID)[1]


@pytest.fixture
def runner(tmp_path, two_cpus):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    (tmp_path / "study").mkdir()
    return ray_runner.RayRunner(program=[path])


def _starts(folder):
    """Returns the ids of a run's processes, each with that of its worker."""
    path = folder / "starts.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [tuple(map(int, line.split())) for line in lines]


def _wait_for(condition, seconds=300):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _is_free(path):
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _worker(process, worker):
    os.kill(worker, signal.SIGKILL)


def _worker_and_process(process, worker):
    os.kill(worker, signal.SIGKILL)
    os.kill(process, signal.SIGKILL)


def _told_to_stop(process, worker):
    os.kill(process, signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kill",
    [_worker, _worker_and_process, _told_to_stop],
    ids=lambda k: k.__name__,
)
def test_another_worker_takes_a_run_over(runs, runner, tmp_path, kill):
    folder = tmp_path / "study" / runs[0].id
    (tmp_path / "study" / "sleep").touch()

    def kill_it():
        _wait_for(lambda: _starts(folder))
        with contextlib.suppress(ProcessLookupError):  # Ray was faster.
            kill(*_starts(folder)[0])

    thread = threading.Thread(target=kill_it)
    thread.start()
    (outcome,) = local_runner.run_missing(runs[:1], folder.parent, runner)
    thread.join()
    assert outcome.error == "" and outcome.result
    assert len(_starts(folder)) == 2
    if kill is _told_to_stop:
        assert (folder / "saved").exists()
    assert _is_free(folder / ".lock")


@pytest.fixture
def old_process(tmp_path):
    """Makes a folder and a process that trains although its worker is gone."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "sleep").touch()
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.yaml").touch()
    flags = process_runner.train_flags(
        [tmp_path / "program.py"], folder / "config.yaml", folder
    )
    environment = {**os.environ, "TF_NUM_INTRAOP_THREADS": "1"}
    process = subprocess.Popen([sys.executable, *flags], env=environment)
    _wait_for(lambda: _starts(folder))
    yield process, flags, environment
    process.kill()
    process.wait()


def test_a_run_is_not_taken_over_before_its_old_process_has_saved(
    old_process, tmp_path
):
    process, flags, environment = old_process
    folder = tmp_path / "run"
    process.terminate()
    lock = folder / ".lock"
    assert ray_task.train_on_node(flags, environment, "", folder, lock) == 0
    assert (folder / "saved").exists() and (folder / "result.json").exists()
    assert "Error" not in (folder / "log.txt").read_text()


def test_a_run_whose_old_process_does_not_end_is_left_to_it(
    old_process, tmp_path, monkeypatch
):
    _, flags, environment = old_process
    folder = tmp_path / "run"
    monkeypatch.setattr(ray_task, "_SECONDS_TO_STOP", 1)
    lock = folder / ".lock"
    assert ray_task.train_on_node(flags, environment, "", folder, lock) == 1
    assert "Another process continues" in (folder / "log.txt").read_text()
    assert len(_starts(folder)) == 1


def test_a_process_does_not_outlive_its_worker(old_process, tmp_path):
    """The kernel ends it if Ray does not."""
    process, flags, environment = old_process
    process.kill()
    process.wait()
    folder = tmp_path / "run"
    (folder / "starts.txt").unlink()
    code = "from tf_adapters.launch import ray_task; import pathlib, os; "
    code += f"f = pathlib.Path({str(folder)!r}); "
    code += f"ray_task.train_on_node({flags!r}, {{}}, '', f, f / '.lock')"
    worker = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, cwd=ROOT
    )
    _wait_for(lambda: _starts(folder))
    worker.kill()
    worker.wait()
    _wait_for(lambda: _is_free(folder / ".lock"))
    assert (folder / "saved").exists()


@pytest.mark.slow
def test_a_run_that_fails_is_started_once(runs, runner, tmp_path, capsys):
    (tmp_path / "study" / "fail").touch()
    outcomes = local_runner.run_missing(runs, tmp_path / "study", runner, 2)
    errors = {o.run.id: o.error for o in outcomes}
    for run in runs:
        failed = "head_only" in run.id
        expected = "exit status 1. Last line: Error: it was to be." * failed
        assert errors[run.id] == expected
        assert len(_starts(tmp_path / "study" / run.id)) == 1
    assert capsys.readouterr().out.count("FAILED, exit status 1") == 2
    log = (tmp_path / "study" / runs[0].id / "log.txt").read_text()
    assert "program.py --config_file=" in log.split("\n")[0]
    assert log.split("\n")[1] == "threads 1"


@pytest.mark.slow
def test_a_run_that_always_stops_ends(runs, tmp_path, two_cpus, monkeypatch):
    monkeypatch.setattr(ray_runner, "_RESTARTS", 1)
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "stop").touch()
    runner = ray_runner.RayRunner(program=[path])
    (outcome,) = local_runner.run_missing(runs[:1], tmp_path / "study", runner)
    assert "stopped again and again" in outcome.error
    assert len(_starts(tmp_path / "study" / runs[0].id)) == 2


@pytest.mark.slow
def test_an_interruption_ends_the_runs(runs, runner, tmp_path, monkeypatch):
    (tmp_path / "study" / "sleep").touch()
    folders = [tmp_path / "study" / run.id for run in runs[:2]]

    def interrupted(futures):
        _wait_for(lambda: all(map(_starts, folders)))
        raise KeyboardInterrupt

    monkeypatch.setattr("concurrent.futures.as_completed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        local_runner.run_missing(runs[:3], tmp_path / "study", runner, 2)
    assert all((folder / "saved").exists() for folder in folders)
    assert all(_is_free(folder / ".lock") for folder in folders)
    assert not _starts(tmp_path / "study" / runs[2].id)


@pytest.mark.slow
def test_runs_at_a_time_are_those_that_nodes_have_room_for(two_cpus):
    assert ray_runner.RayRunner().capacity() == 2
    assert ray_runner.RayRunner(cpus=2).capacity() == 1
    with pytest.raises(ConfigError, match="asks for {'CPU': 1, 'GPU': 0.5}"):
        ray_runner.RayRunner(gpus=0.5).capacity()


def test_without_ray_the_error_says_how_to_install_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "tf_adapters.launch.ray_runner")
    monkeypatch.delattr("tf_adapters.launch.ray_runner")
    status = commands.run(
        None, study="methods", small=True, report=False, executor="ray"
    )
    assert status == 1
    assert "pip install 'tf_adapters[ray]'" in capsys.readouterr().err


def _real_study(folder, **base):
    return studies.write(
        folder,
        base={
            "task": "demo_sentiment",
            "encoder": commands.ENCODER,
            "data.max_train_examples": 64,
            "data.max_length": 16,
            "train.epochs": 1,
            **base,
        },
        grid={"method": ["head_only", "houlsby"], "seed": [0]},
        where=None,
    )


def _train_study(path, executor):
    options = types.SimpleNamespace(
        study=str(path),
        report=False,
        small=False,
        two_cores=False,
        one_gpu=False,
        results_file=None,
        model_dir=str(path.parent / executor),
        config_file=None,
        params_override=[],
        study_processes=2,
        executor=executor,
        overwrite=False,
        ray_address=None,
        ray_cpus=1,
        ray_gpus=0.0,
    )
    assert study_lib.run_studies(options, {"data": {}, "train": {}}) == 0
    return path.parent / executor / "demo"


@pytest.mark.slow
def test_results_are_those_of_local_processes(tmp_path, two_cpus):
    path = _real_study(tmp_path)
    folders = [_train_study(path, name) for name in ("local", "ray")]
    tables = []
    for folder in folders:
        with (folder / "runs.csv").open() as file:
            rows = list(csv.DictReader(file))
        tables.append([{**row, "seconds": None} for row in rows])
    assert tables[0] == tables[1] and len(tables[0]) == 2
    names = [sorted(f.glob("*/adapter/*.safetensors")) for f in folders]
    assert len(names[0]) == 2
    for local, other in zip(*names, strict=True):
        assert local.read_bytes() == other.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGKILL])
def test_no_run_outlives_its_study(tmp_path, kind):
    path = _real_study(tmp_path, **{"train.epochs": 2000})
    command = [sys.executable, str(ROOT / "train.py"), f"--study={path}"]
    command += ["--executor=ray", f"--model_dir={tmp_path / 'runs'}"]
    # As scripts start what they leave in the background.
    command = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command]
    command += ["--study_processes=1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    folder = tmp_path / "runs" / "demo"
    _wait_for(lambda: list(folder.glob("*/metrics.jsonl")))
    (log,) = folder.glob("*/metrics.jsonl")
    _wait_for(log.read_text)  # It trains.
    process.send_signal(kind)
    output, _ = process.communicate(timeout=300)
    _wait_for(lambda: _is_free(log.parent / ".lock"))
    assert not list(folder.glob("*/result.json"))
    if kind == signal.SIGTERM:
        assert process.returncode == 75
        assert "The same command resumes from here." in output
        assert list((log.parent / "checkpoints").iterdir())
