"""Finds out which run a folder already holds, and how far it got."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import dataclass_config
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.config import resolve
from tf_adapters.config import settings as config_settings
from tf_adapters.runs import checkpoints
from tf_adapters.runs import remote_folder
from tf_adapters.runs import run_files

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.runs.checkpoints import Checkpoint


CHECKPOINTS = "checkpoints"
# File with the configuration that the user asked for. It is written only if the
# run's config.yaml differs from it.
DECLARED = "declared.yaml"
# Names and types of the values without which a checkpoint cannot be resumed.
_NEEDED_TO_RESUME = {"data_fingerprint": dict, "log_lines": int}


def _differences(folder: Path, config: Config) -> list[Any]:
    """Compares the configuration of the run in `folder` with `config`.

    Returns a list of lines, one for each setting that differs. The list is
    empty if the folder holds no run.
    """
    theirs = declared_config(folder)
    if theirs is None:
        return []
    return [
        f"  {key}: {shown(there)} there, {shown(now)} now"
        for key, (there, now) in differing_settings(theirs, config).items()
    ]


def differing_settings(theirs: Config, ours: Config) -> dict[str, Any]:
    """Compares two configurations, except where a run computes and reads.

    Returns a dict from the dotted name of each setting that differs to its two
    values.
    """
    there, now = _flat(theirs), _flat(ours)
    keys = {*there, *now}.difference(config_settings.ELSEWHERE)
    return {
        key: (there.get(key), now.get(key))
        for key in sorted(keys)
        if there.get(key) != now.get(key)
    }


def resumable_checkpoint(folder: Path) -> Checkpoint | None:
    """Returns the newest complete `Checkpoint` in a run folder, or `None`."""
    return checkpoints.newest_checkpoint(
        Path(folder) / CHECKPOINTS, _NEEDED_TO_RESUME
    )


def of_stopped_command(
    folder: Any, config: Config, data_fingerprint: dict[str, Any]
) -> Checkpoint | None:
    """Returns the `Checkpoint` of a stopped `--overwrite` command, or `None`.

    The same command, given again, resumes from this checkpoint instead of
    starting over. Otherwise, a command that a scheduler restarts again and
    again might never finish.

    Args:
        folder: Path of the run folder.
        config: `Config` of the command.
        data_fingerprint: Dict from split to the fingerprint of its rows.
    """
    checkpoint = resumable_checkpoint(folder)
    if checkpoint is None or not checkpoint.state.get("overwrites"):
        return None
    if checkpoint.state["data_fingerprint"] != data_fingerprint:
        return None
    try:
        return None if _differences(folder, config) else checkpoint
    except ValueError:
        return None  # Another version wrote the configuration.


def declared_config(folder: Path) -> Config | None:
    """Returns the `Config` that a folder's run was started with, or `None`."""
    for name in (DECLARED, "config.yaml"):
        if (Path(folder) / name).exists():
            return resolve.load_config(Path(folder) / name)
    return None


def finished_result(
    folder: Any, config: Config, data_fingerprint: dict[str, Any]
) -> Any:
    """Returns the result of a finished run with this configuration, or `None`.

    Args:
        folder: Path of the run folder.
        config: `Config` of the run.
        data_fingerprint: Dict from split to the fingerprint of its rows.

    Raises:
        ConfigError: If the finished run used other data, its result is damaged,
            or the folder holds a merged adapter or the smaller fusion of
            `fusion_pruning`, which were not trained.
    """
    if declared_config(folder) is None or _differences(folder, config):
        return None
    result = read_result(folder)
    if result is None:
        return None
    if "merged" in result or "kept_members" in result:
        what = "merged adapter" if "merged" in result else "smaller fusion"
        raise ConfigError(
            f"{folder} holds a {what}, which has the configuration of this run "
            "and did not train. Give another --model_dir, or --overwrite to "
            "train there."
        )
    if "data_fingerprint" not in result:
        raise damaged_result(folder, "it lacks `data_fingerprint`")
    if result["data_fingerprint"] != data_fingerprint:
        raise ConfigError(
            f"{folder} holds this run, which has finished on other data. Give "
            "another --model_dir, or --overwrite to train again."
        )
    return result


def find_checkpoint(
    folder: Path,
    config: Config,
    data_fingerprint: dict[str, Any],
    frozen: Any,
    overwrite: bool,
) -> Checkpoint | None:
    """Returns the `Checkpoint` to resume a run from, or `None` for a new run.

    Args:
        folder: Path of the run folder.
        config: `Config` of the run.
        data_fingerprint: Dict from split to the fingerprint of its rows.
        frozen: Value of `run_folder.frozen_weights` for the model.
        overwrite: See `RunFolder`.

    Raises:
        ConfigError: If the folder holds a run with another configuration, other
            data or other frozen weights, or if this run is finished.
    """
    if overwrite:
        checkpoint = of_stopped_command(folder, config, data_fingerprint)
        if checkpoint is None or _changed(checkpoint, data_fingerprint, frozen):
            return None
        address = remote_folder.address
        print(
            f"{address(folder)}: this command was stopped after step "
            f"{checkpoint.step} and resumes from there. To start again, remove "
            f"{address(folder / CHECKPOINTS)}.",
            flush=True,
        )
        return checkpoint
    _check_may_train(folder, config, data_fingerprint)
    checkpoint = resumable_checkpoint(folder)
    if checkpoint is None:
        return None
    changed = _changed(checkpoint, data_fingerprint, frozen)
    if changed:
        raise ConfigError(
            f"{folder} holds a run that was stopped after step "
            f"{checkpoint.step}, but {changed} have changed since. Restore "
            "them to resume the run, or give --overwrite to start again."
        )
    return checkpoint


def _changed(checkpoint: Any, data_fingerprint: Any, frozen: Any) -> str:
    """Names what changed since a checkpoint: the data, frozen weights or both.

    Returns a string for an error message, or "" if nothing changed.
    """
    state = checkpoint.state
    names = []
    if state["data_fingerprint"] != data_fingerprint:
        names.append("the data")
    # Earlier versions did not store the frozen weights.
    before = state.get("frozen") or frozen
    names += [
        f"the weights of {name}"
        for (name, now), (_, then) in zip(frozen, before, strict=False)
        if now != then
    ]
    return " and ".join(names)


def _check_may_train(
    folder: Path, config: Config, data_fingerprint: Any
) -> None:
    """Raises an error if a run must not be trained in a folder.

    This is so if the folder holds a run with another configuration, or if the
    run of `config` is already finished.
    """
    differences = _differences(folder, config)
    if differences and has_work(folder):
        raise ConfigError(
            f"{folder} holds a run of another configuration:\n"
            + "\n".join(differences)
            + "\nGive another --model_dir, or --overwrite to remove that run."
        )
    result = finished_result(folder, config, data_fingerprint)
    # A task of a multitask run may be finished before the whole run is.
    if result is not None and "trained_with" not in result:
        raise ConfigError(
            f"{folder} holds this run, which has finished meanwhile. "
            "The same command prints its result; --overwrite trains it again."
        )


def has_work(folder: Path) -> bool:
    """Returns whether a run folder has anything that is worth keeping.

    A run that failed before its first step, for example because of a wrong
    setting, leaves nothing worth keeping.
    """
    # Look for files, not folders: on remote file systems, empty folders may
    # remain after their files were removed.
    left = [folder / "result.json", folder / "metrics.jsonl"]
    left += [*folder.glob("adapter/*"), *folder.glob("checkpoints/*/*")]
    return any(path.is_file() and path.stat().st_size > 0 for path in left)


def _flat(config: Config) -> dict[str, Any]:
    return dataclass_config.flatten(resolve.to_dict(config))


def folder_of_task(folder: Path, task: Any) -> Path:
    """Returns the run folder that holds a task's adapter.

    Args:
        folder: Path of a run folder.
        task: Name of the task.

    Returns:
        The task's subfolder if the run trained several tasks, `folder`
        otherwise.
    """
    own = Path(folder) / task
    return own if (own / "config.yaml").exists() else Path(folder)


def read_result(folder: Path) -> Any:
    """Returns the `result.json` of a run folder, or `None` if it is missing.

    A run writes `result.json` when it finishes.

    Raises:
        ConfigError: If the file is damaged.
    """
    path = Path(folder) / "result.json"
    if not path.exists():
        return None
    try:
        return run_files.read_result(path)
    except UserError as error:
        raise damaged_result(folder, error) from error


def damaged_result(folder: Path, reason: Any) -> ConfigError:
    """Returns the `ConfigError` to raise for a damaged `result.json`."""
    return ConfigError(
        f"{Path(folder) / 'result.json'} is damaged: {reason}. Copy it again "
        "from where the run trained, or remove it to train the run again."
    )
