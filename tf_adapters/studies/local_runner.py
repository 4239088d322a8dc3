"""Runs a study's missing runs, each in a process of its own."""

import concurrent.futures
import contextlib
import dataclasses
import fcntl
import glob
import os
from pathlib import Path
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

import tf_adapters
from tf_adapters.config import plugins
from tf_adapters.config import resolve
from tf_adapters.runs import earlier_runs
from tf_adapters.studies import plan as study_plan

# What a Python runs to train: the command, as a module of this very package.
COMMAND = ("-m", "tf_adapters")
ELSEWHERE = "another process is working on it"
_FINISHED_OTHERWISE = (
    "its folder holds a finished run with other settings or paths. Move the "
    "project back to where it was, remove that folder, or give another "
    "--model_dir"
)
# Exit statuses after SIGTERM, with and without a checkpoint, and Ctrl-C.
_STOPPED = (75, -signal.SIGTERM, -signal.SIGINT, 130)


def find_run(run, folder):
    """Returns the folder of a finished run, or `None`.

    It is the run's own in the study's folder, or one of the same settings in
    the folder of a study beside it.

    Args:
        run: `Run`.
        folder: The study's folder.
    """
    folder = Path(folder)
    beside = sorted(folder.parent.glob(f"*/{glob.escape(run.id)}"))
    for path in (folder / run.id, *beside):
        if (path / "result.json").exists() and is_of(run, path):
            return path
    return None


def read_run_result(run, folder):
    """Returns the result of a finished run, wherever `find_run` finds it."""
    path = find_run(run, folder)
    return None if path is None else earlier_runs.read_result(path)


def is_of(run, path):
    """Returns whether a folder was written for this run, as it is now."""
    try:
        saved = earlier_runs.declared_config(path)
    except (ValueError, KeyError):
        # Of another version, or its task file has moved.
        return False
    if saved is None:
        return False
    # Settings that are younger than the folder have their defaults there.
    ours, theirs = map(resolve.to_dict, (run.config, saved))
    return study_plan.identity(ours) == study_plan.identity(theirs)


def read_error(run, folder):
    """Returns why a run failed, or "" if it did not."""
    path = Path(folder) / run.id / "error.txt"
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


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


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a run: `error` is empty if it finished."""

    run: study_plan.Run
    result: dict | None
    error: str
    seconds: float


def run_missing(runs, folder, runner, processes=1):
    """Trains the runs that are not finished, and goes on past failing ones.

    Args:
        runs: List of `Run`.
        folder: The study's folder; each run has one in it, named by its id.
        runner: Function of a configuration file, the run's folder and an open
            log file that trains and returns an exit status. It may have a
            method `stop`, called before an interruption is passed on.
        processes: How many run at the same time.

    Returns:
        List of an `Outcome` for each run that was started.
    """
    found = {run.id: find_run(run, folder) for run in runs}
    missing = [run for run in runs if found[run.id] is None]
    print(_what_is_there(found, Path(folder)), flush=True)
    _warn_of_other_data(runs, found)
    progress = _Progress(len(runs), len(missing), processes)
    outcomes = []
    with (
        _termination_as_interruption(),
        concurrent.futures.ThreadPoolExecutor(processes) as pool,
    ):
        futures = [pool.submit(_run_one, r, folder, runner) for r in missing]
        try:
            for future in concurrent.futures.as_completed(futures):
                outcomes.append(future.result())
                print(progress.line(outcomes[-1]), flush=True)
        except BaseException:
            for future in futures:
                future.cancel()
            getattr(runner, "stop", lambda: None)()
            print("\nStopped. The same command goes on from here.")
            raise
    return outcomes


def _what_is_there(found, folder):
    """Returns how many runs are finished, and how many in folders beside."""
    finished = [path for path in found.values() if path is not None]
    words = f"{len(found)} runs, {len(finished)} of them finished, in {folder}"
    beside = sorted(
        path.parent.name for path in finished if path.parent != folder
    )
    if not beside:
        return words
    names = ", ".join(dict.fromkeys(beside))
    return f"{words}; {len(beside)} of the finished ones are those of {names}"


def _warn_of_other_data(runs, found):
    """Prints which finished runs read their data elsewhere."""
    for run in runs:
        if found[run.id] is None:
            continue
        saved = earlier_runs.declared_config(found[run.id])
        if saved.data.data_dir != run.config.data.data_dir:
            where = saved.data.data_dir or "TensorFlow Datasets"
            print(
                f"{run.id} is kept, but its data were those in {where}: for "
                "others give another --model_dir.",
                flush=True,
            )


class Terminated(KeyboardInterrupt):
    """SIGTERM came; the same command goes on."""

    exit_status = os.EX_TEMPFAIL


@contextlib.contextmanager
def _termination_as_interruption():
    """Lets `kill` end all runs that were started, as Ctrl-C does."""

    def stop(number, frame):
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run_one(run, folder, runner):
    started = time.perf_counter()
    path = Path(folder) / run.id
    if find_run(run, folder) is not None:
        # Another study has trained it in the meantime.
        return Outcome(run, read_run_result(run, folder), "", 0.0)
    if _trains_beside(run, Path(folder)):
        return Outcome(run, None, ELSEWHERE, 0.0)
    path.mkdir(parents=True, exist_ok=True)
    # The process that trains inherits this file and with it the lock, so that
    # it is held even if the study was killed and its run lives on.
    with (path / "log.txt").open("a", encoding="utf-8") as log:
        if not _lock(log):
            return Outcome(run, None, ELSEWHERE, 0.0)
        status = 0
        if read_run_result(run, folder) is None:
            if not is_of(run, path):
                if (path / "result.json").exists():
                    return Outcome(run, None, _FINISHED_OTHERWISE, 0.0)
                _clear(path)
            log.truncate(0)
            (path / "error.txt").unlink(missing_ok=True)
            resolve.save_config(run.config, path / "config.yaml")
            status = runner(path / "config.yaml", path, log)
    result = read_run_result(run, folder)
    error = ""
    if result is None or status != 0:
        result, error = None, _why(path, status)
        # What was told to stop did not fail.
        if status not in _STOPPED:
            (path / "error.txt").write_text(error + "\n", encoding="utf-8")
    return Outcome(run, result, error, time.perf_counter() - started)


def _trains_beside(run, folder):
    """Returns whether another study is training this run right now."""
    for path in folder.parent.glob(f"*/{glob.escape(run.id)}/log.txt"):
        if path.parent.parent == folder:
            continue
        with path.open("a", encoding="utf-8") as log:
            if not _lock(log):
                return True
    return False


def _lock(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _clear(path):
    """Removes what a run of other settings has left."""
    for entry in path.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != "log.txt":
            entry.unlink()


def _why(path, status):
    text = (path / "log.txt").read_text(encoding="utf-8", errors="replace")
    lines = [line.strip() for line in text.replace("\r", "\n").split("\n")]
    last = next((line for line in reversed(lines) if line), "no output")
    if status == 0:
        return f"it ended without a result.json. Last line: {last}"
    return f"exit status {status}. Last line: {last}"


class _Progress:
    """Makes one line for each run, with the time that is left."""

    def __init__(self, total, missing, processes):
        self.total = total
        self.missing = missing
        self.processes = processes
        self.started = time.perf_counter()
        self.done = 0

    def line(self, outcome):
        self.done += 1
        number = self.total - self.missing + self.done
        words = f"[{number} of {self.total}] {outcome.run.id}: "
        if outcome.error:
            failed = "" if outcome.error == ELSEWHERE else "FAILED, "
            words += f"{failed}{outcome.error}"
        else:
            metric = outcome.run.metric
            # What is no metric of a split is in the table alone.
            value = outcome.result["validation"].get(metric)
            words += "finished" if value is None else f"{metric} {value:.4f}"
        words += f", {outcome.seconds:.0f} s"
        left = self.missing - self.done
        if not left:
            return words
        elapsed = time.perf_counter() - self.started
        return f"{words}, about {_duration(left * elapsed / self.done)} left"


def _duration(seconds):
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
