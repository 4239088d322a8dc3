"""What `ray_runner` does in a worker of Ray: it starts the command and waits.

Two processes never train in one folder: the command holds the lock of its run
folder while it lives. Where a worker was killed, Ray kills its process too;
where Ray is gone or does not (RAY_process_group_cleanup_enabled=0), the kernel
tells it to stop. The task that takes the run over waits for the lock.

Imports no TensorFlow, which workers would hold in memory for nothing.
"""

import ctypes
import os
import shlex
import signal
import socket
import subprocess
import sys
import time

import filelock

# What the command ends with when it was told to stop: after a checkpoint, while
# it trained a fusion's members, and before it listened.
_STOPPED = (os.EX_TEMPFAIL, 128 + signal.SIGINT, -signal.SIGTERM)
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
# How long a process that was told to stop may take: it saves first.
_SECONDS_TO_STOP = 600


def train_on_node(flags, environment, python_path, folder, lock):
    """Starts the command, and returns its exit status.

    Args:
        flags: Arguments of Python that start the command, and its flags.
        environment: Dict of what is set where the node has no value.
        python_path: Value of PYTHONPATH, whatever the node has.
        folder: The run's folder; `log.txt` in it goes on.
        lock: Path of the lock that the command holds.

    Raises:
        InterruptedError: If it was told to stop, but not by us.
    """
    # Ray cancels a task by SIGINT's handler, which a study that was started in
    # the background of a script has handed down as none.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command = [sys.executable, *flags]
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        if not _becomes_free(lock):
            log.write(f"Another process goes on training in {folder}.\n")
            return 1
        log.write(f"{socket.gethostname()}: {shlex.join(command)}\n")
        log.flush()
        environment = {**environment, **os.environ, "PYTHONPATH": python_path}
        status = _call(command, environment, log)
    if status in _STOPPED:
        raise InterruptedError("It was told to stop again and again.")
    return status


def _becomes_free(path):
    """Waits until no process has a lock; returns whether that came."""
    try:
        with filelock.FileLock(path, timeout=_SECONDS_TO_STOP):
            return True
    except filelock.Timeout:
        return False


def _call(command, environment, log):
    libc = ctypes.CDLL(None)  # Not between fork and exec, where it may hang.
    process = subprocess.Popen(
        command,
        stdout=log,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=environment,
        preexec_fn=lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM),
    )
    try:
        # Not `wait`: Ray's way to cancel a task does not wake it.
        while process.poll() is None:
            time.sleep(0.2)
    finally:
        process.terminate()
        process.wait()
    return process.returncode
