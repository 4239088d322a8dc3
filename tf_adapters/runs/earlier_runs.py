"""Which run a folder holds already, and how far it came."""

from pathlib import Path

from tf_adapters.common import dataclass_config
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.text_files import read_json
from tf_adapters.config import resolve
from tf_adapters.config import settings as config_settings
from tf_adapters.runs import checkpoints
from tf_adapters.runs import run_files

CHECKPOINTS = "checkpoints"
# What was asked for, where the run's own config.yaml says more.
DECLARED = "declared.yaml"
# What `RunFolder` adds to the state of each checkpoint.
_NEEDED_TO_RESUME = {"data_fingerprint": dict, "log_lines": int}


def _differences(folder, config):
    """Returns a line for each setting in which a folder's run is another."""
    theirs = declared_config(folder)
    if theirs is None:
        return []
    theirs, ours = _flat(theirs), _flat(config)
    return [
        f"  {key}: {shown(theirs.get(key))} there, {shown(ours.get(key))} now"
        for key in sorted(
            {*theirs, *ours}.difference(config_settings.ELSEWHERE)
        )
        if theirs.get(key) != ours.get(key)
    ]


def newest_checkpoint(folder):
    """Returns the newest whole `Checkpoint` in a run folder, or `None`."""
    return checkpoints.newest_checkpoint(
        Path(folder) / CHECKPOINTS, _NEEDED_TO_RESUME
    )


def of_stopped_command(folder, config, data_fingerprint):
    """Returns where a command with --overwrite was told to stop, or `None`.

    It was promised to go on when it is given again; and who gives it again
    unseen, as schedulers do, would never come to its end otherwise.
    """
    checkpoint = newest_checkpoint(folder)
    if checkpoint is None or not checkpoint.state.get("overwrites"):
        return None
    if checkpoint.state["data_fingerprint"] != data_fingerprint:
        return None
    try:
        return None if _differences(folder, config) else checkpoint
    except ValueError:
        return None  # Of another version.


def declared_config(folder):
    """Returns the `Config` that a folder's run was asked for, or `None`."""
    for name in (DECLARED, "config.yaml"):
        if (Path(folder) / name).exists():
            return resolve.load_config(Path(folder) / name)
    return None


def finished(folder, config, data_fingerprint):
    """Returns the result of a configuration's finished run, or `None`.

    Raises:
        ConfigError: If it is finished, but the data were others, the result is
            damaged, or the folder holds a merge, which did not train.
    """
    if declared_config(folder) is None or _differences(folder, config):
        return None
    result = read_result(folder)
    if result is None:
        return None
    if "merged" in result:
        raise ConfigError(
            f"{folder} holds a merged adapter, which has the configuration of "
            "this run and did not train. Give another --model_dir, or "
            "--overwrite to train there."
        )
    if "data_fingerprint" not in result:
        raise damaged_result(folder, "it lacks `data_fingerprint`")
    if result["data_fingerprint"] != data_fingerprint:
        raise ConfigError(
            f"{folder} holds this run, finished, on other data. Give another "
            "--model_dir, or --overwrite to train again."
        )
    return result


def check_config(folder, config):
    """Refuses a folder in which a run of other settings trained.

    Raises:
        ConfigError: With the settings that differ.
    """
    differences = _differences(folder, config)
    if differences and _has_work(folder):
        raise ConfigError(
            f"{folder} holds a run of another configuration:\n"
            + "\n".join(differences)
            + "\nGive another --model_dir, or --overwrite to remove that run."
        )


def _has_work(folder):
    """Whether a run came far enough to lose something.

    One that ended at a wrong setting, before its first step, did not.
    """
    # Files: of what is gone at an address, empty folders may remain.
    left = [folder / "result.json", folder / "metrics.jsonl"]
    left += [*folder.glob("adapter/*"), *folder.glob("checkpoints/*/*")]
    return any(path.is_file() and path.stat().st_size > 0 for path in left)


def _flat(config):
    return dataclass_config.flatten(resolve.to_dict(config))


def folder_of_task(folder, task):
    """Returns the folder of a task within that of its run, or the run's own.

    Args:
        folder: Path of a run folder.
        task: Name of a task, perhaps one of several that trained together.
    """
    own = Path(folder) / task
    return own if (own / "config.yaml").exists() else Path(folder)


def read_result(folder):
    """Returns `result.json` of a run folder, or `None` if it is unfinished.

    Raises:
        ConfigError: If it is damaged.
    """
    path = Path(folder) / "result.json"
    if not path.exists():
        return None
    try:
        result = read_json(path)
        run_files.check_result(result)
    except UserError as error:
        raise damaged_result(folder, error) from error
    return result


def damaged_result(folder, reason):
    """Returns the error of a `result.json` that is not as a run writes it."""
    return ConfigError(
        f"{Path(folder) / 'result.json'} is damaged: {reason}. Copy it again "
        "from where the run trained, or remove it to train the run again."
    )
