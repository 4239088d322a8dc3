"""Trains a run of a study with `tf-adapters train`, in a separate process."""

from collections.abc import Sequence
import os
from pathlib import Path
import shlex
import subprocess
import sys
import threading
from typing import Any

import tf_adapters
from tf_adapters.common.errors import Stopped
from tf_adapters.config import plugins

# Arguments with which Python starts the training command of this package.
COMMAND = ("-m", "tf_adapters")


def train_flags(
    program: Sequence[str], config_file: str | os.PathLike[str], folder: Path
) -> list[str]:
    """Returns the arguments with which Python trains a run.

    Args:
        program: Arguments with which Python starts a program, such as
            `("-m", "tf_adapters")`. It must accept the flags of
            `tf-adapters train`.
        config_file: Path of a YAML file with the run's settings.
        folder: Path of the run folder.
    """
    flags = [f"--config_file={config_file}", f"--model_dir={folder}"]
    return [*map(str, program), *flags, *plugins.plugin_flags()]


def python_path() -> str:
    """Returns a value of PYTHONPATH with which this package can be imported.

    Without it, the package might not be found, since it may not be installed.
    """
    above_package = str(Path(tf_adapters.__file__).parents[1])
    return os.pathsep.join(
        filter(None, [above_package, os.environ.get("PYTHONPATH")])
    )


def environment(threads: int | None = None) -> dict[str, str]:
    """Returns a dict of default environment variables for a run's process.

    Args:
        threads: Number of CPU threads. Default: `None`, which lets TensorFlow
            use all cores.
    """
    # In a log file, a progress bar need not be updated ten times a second.
    values = {"PYTHONUNBUFFERED": "1", "TQDM_MININTERVAL": "30"}
    if threads is not None:
        values["TF_NUM_INTRAOP_THREADS"] = str(threads)
        values["OMP_NUM_THREADS"] = str(threads)
        values["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    return values


class ProcessRunner:
    """Callable that trains a run in a separate process.

    Args:
        processes: Number of processes that run at the same time, each with an
            equal share of the CPU cores. Default: 1.
        program: See `train_flags`. Default: the training command.
    """

    def __init__(
        self, processes: int = 1, program: Sequence[str] = COMMAND
    ) -> None:
        self.program = program
        threads = None
        if processes > 1:
            threads = max(1, (os.cpu_count() or 1) // processes)
        self.environment = {
            **environment(threads),
            **os.environ,
            "PYTHONPATH": python_path(),
        }
        self._alive = set()
        self._stopped = False
        self._lock = threading.Lock()

    def __call__(
        self, config_file: str | os.PathLike[str], folder: Path, log: Any
    ) -> int:
        """Trains a run and returns the exit status.

        Args:
            config_file: Path of a YAML file with the run's settings.
            folder: Path of the run folder.
            log: Open file for the run's output.
        """
        flags = train_flags(self.program, config_file, folder)
        command = [sys.executable, *flags]
        log.write(shlex.join(command) + "\n")
        log.flush()
        with self._lock:
            if self._stopped:
                return Stopped.exit_status
            process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=self.environment,
            )
            self._alive.add(process)
        try:
            return process.wait()
        finally:
            self._alive.discard(process)

    def stop(self) -> None:
        """Terminates all running processes. Later calls start no process."""
        with self._lock:
            self._stopped = True
            for process in list(self._alive):
                process.terminate()
