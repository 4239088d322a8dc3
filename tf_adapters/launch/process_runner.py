"""Trains a run of a study by the command, in a process of its own."""

import os
from pathlib import Path
import shlex
import subprocess
import sys
import threading

import tf_adapters
from tf_adapters.config import plugins

# What a Python runs to train: the command, as a module of this very package.
COMMAND = ("-m", "tf_adapters")


def train_flags(program, config_file, folder):
    """Returns the arguments of a Python that trains a run.

    Args:
        program: Arguments of Python that start a program with our flags.
        config_file: YAML file of the run's settings.
        folder: The run's folder.
    """
    flags = [f"--config_file={config_file}", f"--model_dir={folder}"]
    return [*map(str, program), *flags, *plugins.plugin_flags()]


def python_path():
    """Returns a PYTHONPATH with this very package, installed or not."""
    above_package = str(Path(tf_adapters.__file__).parents[1])
    return os.pathsep.join(
        filter(None, [above_package, os.environ.get("PYTHONPATH")])
    )


def environment(threads=None):
    """Returns what a run's environment holds if it does not say otherwise.

    Args:
        threads: Integer, or `None` for TensorFlow's choice: all cores.
    """
    # A progress bar in a log file need not move ten times a second.
    values = {"PYTHONUNBUFFERED": "1", "TQDM_MININTERVAL": "30"}
    if threads is not None:
        values["TF_NUM_INTRAOP_THREADS"] = str(threads)
        values["OMP_NUM_THREADS"] = str(threads)
        values["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    return values


class ProcessRunner:
    """Trains a run by a command in a process of its own.

    Args:
        processes: How many of them run at the same time; they share the cores.
        program: See `train_flags`.
    """

    def __init__(self, processes=1, program=COMMAND):
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

    def __call__(self, config_file, folder, log):
        """Trains, and returns the exit status.

        Args:
            config_file: YAML file of the run's settings.
            folder: The run's folder.
            log: Open file for what the run prints.
        """
        flags = train_flags(self.program, config_file, folder)
        command = [sys.executable, *flags]
        log.write(shlex.join(command) + "\n")
        log.flush()
        with self._lock:
            if self._stopped:
                return 1
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

    def stop(self):
        """Ends the processes that still run, and lets no other one start."""
        with self._lock:
            self._stopped = True
            for process in list(self._alive):
                process.terminate()
