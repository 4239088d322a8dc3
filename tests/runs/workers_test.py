"""Tests two real workers on one machine: results, and lost workers."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.runs import whole_runs

# Real processes, each of which imports TensorFlow.
pytestmark = pytest.mark.slow
SECONDS = 600


def _start(command, folder, others=None):
    """Starts a command as two workers; returns the processes.

    Args:
        command: List of arguments.
        folder: Where their logs go.
        others: The second worker's command. Default: the same.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(2)]
        for one in sockets:
            one.bind(("localhost", 0))
        workers = [f"localhost:{one.getsockname()[1]}" for one in sockets]
    processes = []
    for index in range(2):
        task = {"type": "worker", "index": index}
        cluster = {"cluster": {"worker": workers}, "task": task}
        with (folder / f"{index}.log").open("a") as log:
            process = subprocess.Popen(
                others if index and others else command,
                env={**os.environ, "TF_CONFIG": json.dumps(cluster)},
                cwd=whole_runs.ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        processes.append(process)
    return processes


def _wait(processes):
    return [process.wait(SECONDS) for process in processes]


def _program(strategy, path, parts=1):
    module = "tests.runs.worker_program"
    command = [sys.executable, "-m", module, strategy, str(path)]
    return [*command, f"--parts={parts}"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process leaves."""
    path = tmp_path_factory.mktemp("alone") / "left"
    command = _program("one_device", path)
    subprocess.run(command, check=True, cwd=whole_runs.ROOT)
    return load_file(path)


# In parts: each worker's four examples two by two, clipped after the sum.
@pytest.mark.parametrize("parts", [1, 2])
def test_two_workers_equal_one_process(alone, tmp_path, parts):
    # Both write the same file, the same values.
    processes = _start(
        _program("multi_worker_mirrored", tmp_path / "both", parts), tmp_path
    )
    assert _wait(processes) == [0, 0]
    expected, actual = alone, load_file(tmp_path / "both")
    assert expected["losses"][0] != expected["losses"][-1]
    np.testing.assert_allclose(actual["losses"], expected["losses"], atol=2e-5)
    np.testing.assert_array_equal(actual["accuracy"], expected["accuracy"])
    for name, value in expected.items():
        atol = 1e-3 if name == "outputs" else 5e-4
        np.testing.assert_allclose(actual[name], value, atol=atol, err_msg=name)


def _command(folder):
    return [
        *whole_runs.command(folder),
        "--distribution_strategy=multi_worker_mirrored",
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run of two workers that nothing interrupts."""
    folder = tmp_path_factory.mktemp("workers")
    assert _wait(_start(_command(folder / "whole"), folder)) == [0, 0]
    return folder / "whole"


def test_a_refusal_of_the_chief_ends_every_worker(tmp_path):
    """They do not report a lost worker, because restarting would not help."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.yaml").write_text("task: demo_sentiment\nseed: 7\n")
    (folder / "metrics.jsonl").write_text("{}\n")
    assert _wait(_start(_command(folder), tmp_path)) == [1, 1]
    for number in range(2):
        log = (tmp_path / f"{number}.log").read_text()
        assert "seed: 7 there, 0 now" in log and "Traceback" not in log


def test_workers_with_other_settings_end_with_the_difference(tmp_path):
    folder = tmp_path / "run"
    others = [*_command(folder), "--params_override=train.weight_decay=0.5"]
    assert _wait(_start(_command(folder), tmp_path, others)) == [1, 1]
    for number in range(2):
        log = (tmp_path / f"{number}.log").read_text()
        assert (
            "The workers of this cluster differ in the setting "
            "`train.weight_decay`: 0.01 on worker 0, 0.5 on worker 1." in log
        )
        assert "Traceback" not in log
    assert not folder.exists()


def test_a_fusion_of_workers_trains_its_members(tmp_path):
    """All workers train each member, and then the fusion."""
    command = [
        *_command(tmp_path / "fusion"),
        "--method=fusion",
        "--params_override=members.tasks=[demo_sentiment,demo_acceptability],train.epochs=1,"
        "train.snapshot_steps=null,members.settings.train.epochs=1",
    ]
    assert _wait(_start(command, tmp_path)) == [0, 0]
    members = sorted((tmp_path / "members").glob("*/demo_*/adapter"))
    assert len(members) == 2
    # The second worker does not see the finished run of the first one.
    others = [*command, f"--model_dir={tmp_path / 'elsewhere' / 'fusion'}"]
    assert _wait(_start(command, tmp_path, others)) == [0, 0]
    assert not (tmp_path / "elsewhere").exists()


# Either signal, and either worker; the other two pairs take minutes more.
@pytest.mark.parametrize(
    ("number", "kind"),
    [(0, signal.SIGKILL), (1, signal.SIGTERM)],
    ids=["chief-killed", "follower-told"],
)
def test_where_one_worker_ends_all_do_and_go_on(whole, tmp_path, kind, number):
    folder = tmp_path / "run"
    processes = _start(_command(folder), tmp_path)
    deadline = time.monotonic() + SECONDS
    while whole_runs.steps_done(folder) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    processes[number].send_signal(kind)
    statuses = _wait(processes)
    other = (tmp_path / f"{1 - number}.log").read_text()
    assert statuses[1 - number] == 75, other
    if kind == signal.SIGTERM:
        assert statuses == [75, 75]
        assert "Stopped by another worker after step 20" in other
    else:
        assert "Another worker is gone" in other
    assert _wait(_start(_command(folder), tmp_path)) == [0, 0]
    whole_runs.check_equal(folder, whole)


def test_a_finished_run_ends_every_worker(whole, tmp_path):
    """Without a common folder, too, where the chief alone has the result."""
    ours, theirs = _command(whole), _command(tmp_path / "theirs")
    assert _wait(_start(ours, tmp_path, theirs)) == [0, 0]
    for number in range(2):
        log = (tmp_path / f"{number}.log").read_text()
        assert (
            "holds this run, which has finished" in log
            and "validation: " in log
        )
    assert not (tmp_path / "theirs").exists()
