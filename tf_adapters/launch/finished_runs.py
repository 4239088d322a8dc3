"""Which runs of a study are finished or failed, and where they lie."""

import glob
from pathlib import Path

from tf_adapters.config import resolve
from tf_adapters.launch import planned_run
from tf_adapters.runs import earlier_runs


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
    return planned_run.identity(ours) == planned_run.identity(theirs)


def read_error(run, folder):
    """Returns why a run failed, or "" if it did not."""
    path = Path(folder) / run.id / "error.txt"
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""
