"""What lies in a run folder before its run: from an earlier one, or not."""

from pathlib import Path

from tf_adapters.common import own_files
from tf_adapters.common.adapter_folder import CONFIG_FILE
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import task as config_task
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import predictions
from tf_adapters.runs import run_log

# Adapter folders that a run writes.
ADAPTERS = ("adapter", "encoder")
SNAPSHOTS = "snapshots"
# What `tf_adapters.report` makes of the folder.
REPORT = "report"
# Files of tables that were in memory.
TABLES = "tables"
# Folders that a run removes of an earlier one.
_REMOVED = (
    *ADAPTERS,
    SNAPSHOTS,
    earlier_runs.CHECKPOINTS,
    predictions.FOLDER,
    REPORT,
)


def check_folders(folder, config):
    """Refuses a folder in which a run would write through a link.

    Args:
        folder: Path of the run folder, which itself may be a link.
        config: `Config` of the run; each of several tasks has a folder.

    Raises:
        UserError: With the name of the link.
    """
    tasks = list(config_task.by_task(config))
    own = tasks if len(tasks) > 1 else []
    for name in (*_REMOVED, TABLES, run_log.EVENTS, *own):
        own_files.check_folder(folder / name)


def check_is_a_runs(folder):
    """Refuses a folder with what a run would remove and no run wrote."""
    if (folder / "config.yaml").exists():
        return
    for name in _REMOVED:
        if (folder / name).exists():
            raise ConfigError(
                f"{folder} holds `{name}` but no config.yaml, so it "
                "is no run's, and a run would remove it. Give another "
                "--model_dir."
            )


def remove_run(folder):
    """Removes what an earlier run left, so that two never mix."""
    # Last: without checkpoints and the log there is no run.
    names = ("result.json", "error.txt", *_REMOVED, "metrics.jsonl")
    for name in names:
        own_files.remove(folder / name)


def remove_tables(folder, config):
    """Removes the tables of an earlier run that this one does not read.

    Args:
        folder: Path of the run folder.
        config: `Config` of the new run.
    """
    data = config.data
    read = (data.file, data.validation_file, data.test_file)
    read = {Path(path).absolute() for path in read if path}
    for path in (folder / TABLES).glob("*"):
        if path.absolute() not in read:
            own_files.remove(path)


def remove_rests(folder):
    """Removes what a process left that was killed while it saved.

    Saving refuses to replace a folder that is no adapter's, as one looks
    that was removed in part.
    """
    for partial in folder.glob(".*.partial"):
        own_files.remove(partial)
    for name in ADAPTERS:
        if not (folder / name / CONFIG_FILE).exists():
            own_files.remove(folder / name)
