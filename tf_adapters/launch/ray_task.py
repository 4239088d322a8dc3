"""The part of `ray_runner` that runs in a Ray worker: trains in a subprocess.

The subprocess runs the training command. The command locks its run folder, so
two processes never train in the same folder. If a worker is killed, Ray kills
its subprocess too. If Ray has ended, or does not kill processes
(RAY_process_group_cleanup_enabled=0), the kernel sends the subprocess a
SIGTERM. The Ray task that then resumes the run waits for the lock.

This module does not import TensorFlow, to save memory in the workers.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING
from typing import Any

import filelock

if TYPE_CHECKING:
    from pathlib import Path


# Exit statuses of a command that was asked to stop: after saving a checkpoint,
# while training a fusion's members, and before it had a signal handler.
_STOPPED = (os.EX_TEMPFAIL, 128 + signal.SIGINT, -signal.SIGTERM)
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
# Seconds that a process that was asked to stop may take to save a checkpoint.
_SECONDS_TO_STOP = 600


def train_on_node(
    flags: Any,
    environment: dict[str, Any],
    python_path: Any,
    folder: Path,
    lock: Any,
) -> Any:
    """Runs the training command and returns its exit status.

    Args:
        flags: Arguments with which Python starts the command, with its flags.
        environment: Dict of environment variables to set, unless the node
            already sets them.
        python_path: Value of PYTHONPATH, which replaces the node's value.
        folder: Path of the run folder. Output is appended to its `log.txt`.
        lock: Path of the lock file that the command locks while it trains.

    Raises:
        InterruptedError: If the command stopped because of a signal.
    """
    # Ray cancels a task through the SIGINT handler. Set it, because a script
    # that starts the study in the background makes its processes ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command = [sys.executable, *flags]
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        if not _becomes_free(lock):
            log.write(f"Another process continues the training in {folder}.\n")
            return 1
        log.write(f"{socket.gethostname()}: {shlex.join(command)}\n")
        log.flush()
        environment = {**environment, **os.environ, "PYTHONPATH": python_path}
        status = _call(command, environment, log)
    if status in _STOPPED:
        raise InterruptedError("It was stopped again and again.")
    return status


def _becomes_free(path: Path) -> bool:
    """Waits until the lock file `path` is not locked.

    Returns `True`, or `False` if it is still locked after ten minutes.
    """
    try:
        with filelock.FileLock(path, timeout=_SECONDS_TO_STOP):
            return True
    except filelock.Timeout:
        return False


def _call(command: Any, environment: dict[str, str], log: Any) -> Any:
    libc = ctypes.CDLL(None)  # Load it before the fork: later it may hang.
    process = subprocess.Popen(
        command,
        stdout=log,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=environment,
        preexec_fn=lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM),
    )
    try:
        # `process.wait` would not be woken up when Ray cancels the task.
        while process.poll() is None:
            time.sleep(0.2)
    finally:
        process.terminate()
        process.wait()
    return process.returncode
