"""Checks and removes files in a run folder before a new run starts."""

from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tf_adapters.common import own_files
from tf_adapters.common.adapter_folder import CONFIG_FILE
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.settings_text import load_yaml
from tf_adapters.config import resolve
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import predictions
from tf_adapters.runs import remote_folder
from tf_adapters.runs import run_log

# Folders of weights that a run writes.
ADAPTERS = ("adapter", "encoder")
SNAPSHOTS = "snapshots"
# The folder that `tf_adapters.report` writes.
REPORT = "report"
# Folders of an earlier run that a new run removes.
_FOLDERS = (
    *ADAPTERS,
    SNAPSHOTS,
    earlier_runs.CHECKPOINTS,
    predictions.FOLDER,
    REPORT,
)
# All that a new run removes, in this order. The log is last: while it exists,
# the folder still counts as a run.
_REMOVED = ("result.json", "error.txt", *_FOLDERS, "metrics.jsonl")
# One of these is in every folder of a run that has been started: a study starts
# a run with its log, and a run without a result has checkpoints or metrics. The
# adapter may be all that somebody kept.
_OF_RUNS = (
    *(".lock", "log.txt", "metrics.jsonl", "checkpoints", "result.json"),
    *("error.txt", f"adapter/{CONFIG_FILE}"),
)


def check_folders(folder: Path, tasks: Sequence[str]) -> None:
    """Raises an error if a subfolder that a run writes to is a symbolic link.

    Args:
        folder: Path of the run folder. It may itself be a link.
        tasks: Names of the tasks that the run trains together, each of which
            has a subfolder.

    Raises:
        UserError: If a subfolder is a link. Names the link.
    """
    for name in (*_FOLDERS, resolve.TABLES, run_log.EVENTS, *tasks):
        own_files.check_folder(folder / name)


def check_is_a_runs(folder: Path, started: bool) -> None:
    """Raises a `ConfigError` if a run would remove or replace others' files.

    If the run folder has no `config.yaml` of a run, a file or a subfolder with
    a name such as `adapter` was not written by a run.

    Args:
        folder: Path of the run folder.
        started: Result of `was_started` before the folder was locked, because
            the lock makes it look like a run's.
    """
    if not _has_config(folder):
        # A run that failed next to others in one program has only `error.txt`.
        _check_lacks(folder, [n for n in _REMOVED if n != "error.txt"])
        return
    # A run at an address keeps no lock there, and may have only its settings.
    is_local = str(folder) == remote_folder.address(folder)
    if is_local and not started:
        raise ConfigError(
            f"A run stores its settings in {folder / 'config.yaml'}, but this "
            "file is there and was not written by a run. Give the file another "
            "name, such as settings.yaml, or give another --model_dir."
        )


def _check_lacks(folder: Path, names: Iterable[str]) -> None:
    if (folder / "config.yaml").exists():
        raise ConfigError(
            f"{folder} holds a config.yaml of another program, so it does not "
            "belong to a run, and training there would replace this file. Give "
            "another --model_dir."
        )
    for name in names:
        if (folder / name).exists():
            raise ConfigError(
                f"{folder} holds `{name}` but no config.yaml of a run, so it "
                "does not belong to a run, and training there would remove "
                "it. Give another --model_dir."
            )


def was_started(folder: Path) -> bool:
    """Returns whether a run has been started in a folder."""
    return any((folder / name).exists() for name in _OF_RUNS)


def _has_config(folder: Path) -> bool:
    """Returns whether a folder has the settings of a run, maybe damaged."""
    path = folder / "config.yaml"
    if not path.exists():
        return False
    try:
        settings = load_yaml(path)
    except ConfigError:
        return True
    return bool({"task", "tasks", "method"} & settings.keys())


def remove_run(folder: Path) -> None:
    """Removes an earlier run's files, so that two runs' files never mix."""
    for name in _REMOVED:
        own_files.remove(folder / name)


def remove_tables(folder: Path, paths: Iterable[Any]) -> None:
    """Removes an earlier run's data tables, unless the new run reads them.

    Args:
        folder: Path of the run folder.
        paths: Paths of the tables that the new run reads. Items may be `None`.
    """
    read = {Path(path).absolute() for path in paths if path}
    for path in (folder / resolve.TABLES).glob("*"):
        if path.absolute() not in read:
            own_files.remove(path)


def remove_rests(folder: Path) -> None:
    """Removes the partial files of a process that was killed while saving.

    Also removes an adapter folder or encoder folder that has no configuration
    file, because saving would refuse to replace it.
    """
    for partial in folder.glob(".*.partial"):
        own_files.remove(partial)
    for name in ADAPTERS:
        if not (folder / name / CONFIG_FILE).exists():
            own_files.remove(folder / name)
