"""Trains the unfinished runs of a study, and continues if a run fails."""

from collections.abc import Iterator
from collections.abc import Sequence
import concurrent.futures
import contextlib
import dataclasses
import glob
from pathlib import Path
import shutil
import signal
import time
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import own_files
from tf_adapters.common.errors import Stopped
from tf_adapters.common.errors import UserError
from tf_adapters.common.sigterm import on_sigterm
from tf_adapters.common.text_files import replace_text
from tf_adapters.config import resolve
from tf_adapters.launch import finished_runs
from tf_adapters.launch import planned_run
from tf_adapters.launch import progress_lines
from tf_adapters.runs import earlier_runs

if TYPE_CHECKING:
    from tf_adapters.launch.planned_run import Run

try:
    import fcntl
except ImportError:  # On Windows.
    fcntl = None

ELSEWHERE = "another process is working on it"
FINISHED_OTHERWISE = (
    "its folder holds a finished run with other settings, data or paths. "
    "Remove that folder, give another --model_dir, or move the project back if "
    "you have moved it"
)
# Exit statuses of a run that was stopped: by SIGTERM, with a checkpoint and
# without, and by Ctrl-C.
_STOPPED = (75, -signal.SIGTERM, -signal.SIGINT, 130)


@dataclasses.dataclass(frozen=True)
class RunOutcome:
    """The outcome of trying to train a run.

    Attributes:
        run: `Run`.
        result: Content of `result.json`, or `None` if the run did not finish.
        error: Message that says why the run did not finish, or "".
        seconds: Duration of the training in seconds.
    """

    run: planned_run.Run
    result: dict[str, Any] | None
    error: str
    seconds: float

    @property
    def is_elsewhere(self) -> bool:
        """Whether another process is training the run."""
        return self.error == ELSEWHERE


def run_missing(
    runs: "Sequence[Run]",
    folder: Path,
    runner: Any,
    processes: int = 1,
    store: Any = None,
) -> list[Any]:
    """Trains the runs that are not finished, and continues if a run fails.

    Args:
        runs: List of `Run`.
        folder: Path of the study's folder. Each run has a subfolder that is
            named by its id.
        runner: Callable that trains a run and returns an exit status. Its
            arguments are the path of a configuration file, the path of the
            run folder and an open log file. If it has a method `stop`, the
            method is called when the study is interrupted.
        processes: Number of runs to train at the same time. Default: 1.
        store: Function that is called with a `Run` and its result after each
            run that finished, or `None` (default).

    Returns:
        List with a `RunOutcome` for each run that was not finished when this
        function was called.
    """
    found = {run.id: finished_runs.find_run(run, folder) for run in runs}
    missing = [run for run in runs if found[run.id] is None]
    print(progress_lines.what_is_there(found, Path(folder)), flush=True)
    progress_lines.warn_of_other_data(runs, found)
    progress = progress_lines.ProgressLines(len(runs), len(missing))
    outcomes = []
    with (
        termination_as_interruption(),
        concurrent.futures.ThreadPoolExecutor(processes) as pool,
    ):
        futures = [pool.submit(_run_one, r, folder, runner) for r in missing]
        try:
            for future in concurrent.futures.as_completed(futures):
                outcomes.append(future.result())
                if store and outcomes[-1].result is not None:
                    store(outcomes[-1].run, outcomes[-1].result)
                print(progress.line(outcomes[-1]), flush=True)
        except BaseException:
            for future in futures:
                future.cancel()
            getattr(runner, "stop", lambda: None)()
            print("\nStopped. The same command resumes from here.")
            raise
    return outcomes


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM. The same command resumes the study."""

    exit_status = Stopped.exit_status


@contextlib.contextmanager
def termination_as_interruption() -> Iterator[None]:
    """Context manager that makes SIGTERM stop all runs, as Ctrl-C does."""

    def stop(number: int, frame: Any) -> None:
        raise Terminated

    with on_sigterm(stop):
        yield


def _run_one(run: "Run", folder: Path, runner: Any) -> "RunOutcome":
    """Trains a run, unless it is finished or another process is training it.

    See `run_missing` for the arguments.

    Returns:
        `RunOutcome`.
    """
    found = finished_runs.find_run(run, folder)
    if found is not None:
        # Another study has trained it in the meantime.
        return RunOutcome(run, earlier_runs.read_result(found), "", 0.0)
    path = Path(folder) / run.id
    if _trains_elsewhere(run, Path(folder)):
        return RunOutcome(run, None, ELSEWHERE, 0.0)
    started = time.perf_counter()
    try:
        own_files.make_folder(folder, run.id)
    except UserError as error:
        return RunOutcome(run, None, str(error), 0.0)
    # The training process inherits this file and its lock. So the lock is held
    # even if the study is killed and the training process survives.
    with own_files.open_to_append(path / "log.txt") as log:
        if not _lock(log):
            return RunOutcome(run, None, ELSEWHERE, 0.0)
        status = 0
        if finished_runs.find_run(run, folder) is None:
            if is_finished_otherwise(run, path):
                return RunOutcome(run, None, FINISHED_OTHERWISE, 0.0)
            status = _train(run, path, runner, log)
    return _outcome(run, folder, status, time.perf_counter() - started)


def is_finished_otherwise(run: "Run", path: Path) -> bool:
    """Returns whether `path` holds a finished run of other settings or data."""
    has_result = (path / "result.json").exists()
    return has_result and not finished_runs.is_finished(run, path)


def _train(run: "Run", path: Path, runner: Any, log: Any) -> Any:
    """Trains a run in the folder `path`; returns the runner's exit status.

    If the folder has files of a run with other settings, removes them first.
    """
    if not finished_runs.is_of(run, path):
        _clear(path)
    log.truncate(0)
    own_files.remove(path / "error.txt")
    resolve.save_config(run.config, path / "config.yaml")
    return runner(path / "config.yaml", path, log)


def _outcome(
    run: "Run", folder: Path, status: Any, seconds: float
) -> "RunOutcome":
    """Returns the `RunOutcome` of a run that the runner has tried to train.

    If the run failed, writes `error.txt`.

    Args:
        run: `Run`.
        folder: Path of the study's folder.
        status: Exit status that the runner returned.
        seconds: Duration of the training.
    """
    result = finished_runs.read_run_result(run, folder)
    if result is not None and status == 0:
        return RunOutcome(run, result, "", seconds)
    path = Path(folder) / run.id
    error = _why(path, status)
    # A run that was asked to stop has not failed.
    if status not in _STOPPED:
        replace_text(path / "error.txt", error + "\n")
    return RunOutcome(run, None, error, seconds)


def _trains_elsewhere(run: "Run", folder: Path) -> bool:
    """Returns whether a study in another folder is training this run now."""
    for path in folder.parent.glob(f"*/{glob.escape(run.id)}/log.txt"):
        if path.parent.parent == folder or path.is_symlink():
            continue
        # Members of fusions with other settings are named after tasks too. A
        # run that has just been started may not have a configuration yet.
        has_config = (path.parent / "config.yaml").exists()
        if has_config and not finished_runs.is_of(run, path.parent):
            continue
        if _is_locked(path):
            return True
    return False


def _is_locked(path: Path) -> bool:
    """Returns whether another process has locked a file.

    For a file that may not be written to, such as another user's, returns
    `False`.
    """
    try:
        with path.open("a", encoding="utf-8") as log:
            return not _lock(log)
    except OSError:
        return False


def _lock(file: Any) -> bool:
    """Locks a file; returns whether no other process has locked it.

    On Windows, which has no such locks, always returns `True`.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _clear(path: Path) -> None:
    """Removes everything in a run folder except `log.txt`."""
    for entry in path.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != "log.txt":
            entry.unlink()


def _why(path: Path, status: Any) -> str:
    text = (path / "log.txt").read_text(encoding="utf-8", errors="replace")
    lines = [line.strip() for line in text.replace("\r", "\n").split("\n")]
    last = next((line for line in reversed(lines) if line), "no output")
    if status == 0:
        return f"it ended without a result.json. Last line: {last}"
    return f"exit status {status}. Last line: {last}"
