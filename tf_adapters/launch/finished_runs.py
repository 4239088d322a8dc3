"""Finds the finished and failed runs of a study, and their folders."""

from __future__ import annotations

import glob
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.config import resolve
from tf_adapters.config import task as config_task
from tf_adapters.launch import planned_run
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import task_data

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.launch.planned_run import Run

# Fingerprints of the tables that this process has read.
_KNOWN: dict[str, dict[str, str]] = {}


def find_run(run: Run, folder: Path) -> Path | None:
    """Returns the folder of a finished run with a planned run's settings.

    Looks first in the study's own folder, then in the study folders next to it.
    Returns `None` if there is no such run.

    Args:
        run: Planned `Run`.
        folder: Path of the study's folder.
    """
    folder = Path(folder)
    others = sorted(folder.parent.glob(f"*/{glob.escape(run.id)}"))
    for path in (folder / run.id, *others):
        if is_finished(run, path):
            return path
    return None


def is_finished(run: Run, path: Path) -> bool:
    """Returns whether the folder `path` holds the finished run `run`.

    A table can move, and other tables can have the same file name. So if the
    finished run read a table with another path, its content decides.
    """
    if not ((path / "result.json").exists() and is_of(run, path)):
        return False
    saved: Any = earlier_runs.declared_config(path)
    ours = _tables(run.config)
    are_here = all(os.path.exists(path) for path in ours if path)
    if _tables(saved) == ours or not are_here:
        return True  # A report may be made without the tables.
    try:
        return saw_our_data(run, path)
    except UserError:
        return False


def _tables(config: Config) -> tuple[str | None, ...]:
    data = config.data
    return data.file, data.validation_file, data.test_file


def saw_our_data(run: Run, path: Path) -> bool:
    """Returns whether the finished run in `path` was trained on `run`'s data.

    Raises:
        UserError: If the data cannot be read.
    """
    found = {
        name: _fingerprints(own)
        for name, own in config_task.by_task(run.config).items()
    }
    ours = found if len(found) > 1 else next(iter(found.values()))
    theirs = earlier_runs.read_result(path)
    return theirs is not None and theirs.get("data_fingerprint") == ours


def _fingerprints(config: Config) -> dict[str, str]:
    """Returns the fingerprint of each split of a run's data.

    Tables are read only once, although a study may ask for each of its runs.
    """
    if not config.data.file:
        return task_data.load_task_data(config).fingerprints
    stats = [os.stat(path) for path in _tables(config) if path]
    settings = resolve.to_dict(config)
    key = [config.task, settings["data"], config.seed]
    key += [[one.st_mtime_ns, one.st_size] for one in stats]
    text = json.dumps(key, sort_keys=True)
    if text not in _KNOWN:
        _KNOWN[text] = task_data.load_task_data(config).fingerprints
    return _KNOWN[text]


def read_run_result(run: Run, folder: Path) -> Any:
    """Returns the `result.json` of the run that `find_run` finds, or `None`.

    See `find_run` for the arguments.
    """
    path = find_run(run, folder)
    return None if path is None else earlier_runs.read_result(path)


def is_of(run: Run, path: Path) -> bool:
    """Returns whether the folder `path` holds a run with `run`'s settings."""
    try:
        saved = earlier_runs.declared_config(path)
    except (ValueError, KeyError):
        # Another version wrote the configuration, or its task file has moved.
        return False
    if saved is None:
        return False
    # Settings that did not exist when the folder was written have defaults.
    ours, theirs = map(resolve.to_dict, (run.config, saved))
    return planned_run.identity(ours) == planned_run.identity(theirs)


def read_error(run: Run, folder: Path) -> str:
    """Returns the error message of a failed run, or "" if it did not fail.

    Args:
        run: `Run`.
        folder: Path of the study's folder.
    """
    path = Path(folder) / run.id / "error.txt"
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""
