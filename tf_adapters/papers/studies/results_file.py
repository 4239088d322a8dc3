"""Stores results of finished runs in a file, to train them only once.

The format is JSON Lines. Each row has `run` (the run's id), `settings` (all
settings of the run, except the locations of data) and `result` (its
`result.json`).
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import errno
import json
import os
from pathlib import Path
from typing import Any
from typing import TextIO

from tf_adapters.common import own_files
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.common.text_files import parse_json
from tf_adapters.common.text_files import read_file
from tf_adapters.config import resolve
from tf_adapters.data.rows import splits
from tf_adapters.launch import finished_runs
from tf_adapters.launch.planned_run import Run
from tf_adapters.launch.planned_run import identity
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import run_files

try:
    import fcntl
except ImportError:  # On Windows.
    fcntl = None

_KEYS = {"run", "settings", "result"}
# Keys of a `result.json` that must be equal in the file and in a run's folder.
_MEASURED = (
    *splits.EVALUATED,
    *("mean_metric", "method_report", "tasks", "transfer"),
    "trained_weights",
)


class ResultsFile:
    """Results of finished runs, in a file that other machines can use.

    Args:
        path: Path of the file. If it does not exist, `add` creates it.

    Raises:
        ConfigError: If a row is damaged.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self._results: dict[str, dict[str, Any]] = {}
        self._lines_read = 0
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        """Reads the lines that were added since the last time."""
        for line in self._lines()[self._lines_read :]:
            self._lines_read += 1
            try:
                self._remember(_read_row(line))
            except UserError as error:
                raise ConfigError(
                    f"{self.path} is damaged in line {self._lines_read}: "
                    f"{error}. Copy the file again, or remove the line; a run "
                    "without a row is trained again."
                ) from error

    def restore(self, runs: Iterable[Run], folder: Path) -> None:
        """Creates the folder of each planned run whose result is in the file.

        A folder with a run that has started is left as it is. A restored folder
        has `config.yaml` and `result.json`, but no adapter and no predictions.
        A run that has finished, in this folder or in one next to it, keeps its
        result. If rows have other results, a line says so.

        Args:
            runs: The planned runs.
            folder: Path of the study's folder.
        """
        others = []
        for run in runs:
            result = self._results.get(_identity(run))
            if result is None:
                continue
            found = finished_runs.find_run(run, folder)
            if found is None and not earlier_runs.has_work(folder / run.id):
                _write_run(run, result, folder)
            elif found and not _same(earlier_runs.read_result(found), result):
                others.append(found)
        if others:
            print(
                "Finished runs whose results differ from their rows in "
                f"{self.path}: {len(others)}, such as {others[0]}. The results "
                "in the folders are used. For those of the file, give an empty "
                "--model_dir.",
                flush=True,
            )

    def add_finished(self, runs: Iterable[Run], folder: Path) -> None:
        """Adds the results of the runs that have finished in a study's folder.

        See `add`.
        """
        for run in runs:
            result = finished_runs.read_run_result(run, folder)
            if result is not None:
                self.add(run, result)

    def add(self, run: Run, result: dict[str, Any]) -> None:
        """Appends the row of a finished run, unless the file already has it.

        Other processes may append to the same file. An encoder in a subfolder
        of the current folder is stored as a relative path. For a fusion over
        multi-task adapters, the encoder that these trained is stored under the
        name of the one that they started from. A run whose row
        would contain another path of this machine, or a number that JSON does
        not have, such as NaN, is not added. A line then says so.

        Args:
            run: The run.
            result: Its `result.json`.
        """
        if _identity(run) in self._results:
            return
        settings = json.loads(_identity(run))
        settings["encoder"] = _relative(settings["encoder"])
        if result.get("encoder"):  # `no_bert` has none.
            encoder = _relative(result["encoder"])
            if os.path.isabs(encoder):  # In the folder of the fusion's members.
                encoder = settings["encoder"]
            result = {**result, "encoder": encoder}
        row = {"run": run.id, "settings": settings, "result": result}
        paths = [name for name, text in _texts(row) if os.path.isabs(text)]
        if run.config.data.file:
            paths.append("settings.data.file")
        if paths:
            print(
                f"{run.id} is not added to {self.path}: `{paths[0]}` is a path "
                "of this machine.",
                flush=True,
            )
            return
        try:
            line = json.dumps(row, sort_keys=True, allow_nan=False)
        except ValueError:
            print(
                f"{run.id} is not added to {self.path}: its result.json has a "
                "number that is not finite.",
                flush=True,
            )
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with own_files.open_to_append(self.path) as file:
            _wait_for_lock(file)
            # Another process may have added the run since the file was read.
            self._read()
            if _identity(run) not in self._results:
                self._append(line, file)
                self._lines_read += 1
                self._remember(row)

    def _lines(self) -> list[str]:
        try:
            return read_file(self.path).decode().splitlines()
        except (UserError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{self.path} cannot be read: {error}. Expected: a JSON Lines "
                "file that --results_file wrote."
            ) from error

    def _remember(self, row: dict[str, Any]) -> None:
        """Stores the result of a row of the file in memory, keyed by settings.

        Settings that were added after the row was written get their defaults.
        """
        try:
            config = resolve.resolve_config(row["settings"])
            config = resolve.with_absolute_paths(config)
        except (ValueError, KeyError):
            return  # Another version wrote the row, so no run matches it.
        key = identity(resolve.to_dict(config))
        if self._results.setdefault(key, row["result"]) != row["result"]:
            raise UserError(
                f"run {row['run']} has another result above, so remove one of "
                "the two lines"
            )

    def _append(self, line: str, file: TextIO) -> None:
        """Appends a line in one write, so that no reader sees half a line."""
        size = os.fstat(file.fileno()).st_size
        # An editor may have removed the last end of line.
        if size and not read_file(self.path).endswith(b"\n"):
            line = "\n" + line
        data = (line + "\n").encode()
        # A full disk may take a part of the line without an error.
        if os.write(file.fileno(), data) < len(data):
            os.ftruncate(file.fileno(), size)
            raise OSError(
                errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path)
            )


def _identity(run: Run) -> str:
    return identity(resolve.to_dict(run.config))


def _relative(encoder: str) -> str:
    """Returns a path in the current folder as a relative one, or `encoder`."""
    here = Path.cwd()
    inside = Path(encoder).is_relative_to(here)
    return Path(encoder).relative_to(here).as_posix() if inside else encoder


def _wait_for_lock(file: TextIO) -> None:
    """Locks a file until it is closed, after other processes have closed it."""
    if fcntl is not None:
        # Some network file systems have no locks.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)


def _write_run(run: Run, result: dict[str, Any], folder: Path) -> None:
    path = own_files.make_folder(folder, run.id)
    own_files.remove(path / "error.txt")
    resolve.save_config(run.config, path / "config.yaml")
    run_files.write_result(path / "result.json", result)


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Returns whether what was measured is equal, whatever time it took."""
    return all(one.get(key) == other.get(key) for key in _MEASURED)


def _read_row(line: str) -> dict[str, Any]:
    row = parse_json(line)
    if not isinstance(row, dict) or set(row) != _KEYS:
        raise UserError(f"it must be a mapping with {', '.join(sorted(_KEYS))}")
    if not isinstance(row["settings"], dict):
        raise UserError("`settings` must be a mapping")
    run_files.check_result(row["result"])
    return row


def _texts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yields `(name, string)` for each string in a nested dict or list.

    The name consists of the dict keys that lead to the string, with dots.
    """
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _texts(part, f"{name}.{key}".lstrip("."))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part, name)
