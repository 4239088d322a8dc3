"""The first stage of AdapterFusion: an adapter for each of several tasks.

This is knowledge extraction, section 3.1 of Pfeiffer et al. 2021. If a fusion
names no trained adapters, an adapter is trained for each task in
`members.tasks`. These adapters are the fusion's members. Each task is trained
in its own process and run folder (ST-A), or all of them together (MT-A).

Finished adapters are reused. A command that was stopped trains only the missing
adapters when it is given again, and fusions for other tasks with the same
settings share the adapters. A finished run with the same settings is also used,
if it is next to the fusion's run or in a study next to the fusion's study.
"""

from __future__ import annotations

from collections.abc import Sequence
import concurrent.futures
import dataclasses
import glob
from pathlib import Path
import time
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import DataError
from tf_adapters.config import presets
from tf_adapters.config import task as config_task
from tf_adapters.launch import finished_runs
from tf_adapters.launch import local_runner
from tf_adapters.launch import member_plan
from tf_adapters.launch import planned_run
from tf_adapters.launch import process_runner
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import task_data

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.launch.planned_run import Run


_SECONDS_TO_WAIT = 10


def train_members(
    config: Config, folder: Path, runner: Any = None, processes: int = 1
) -> Config:
    """Trains the adapters that a fusion combines, unless they are finished.

    Args:
        config: `Config` of a fusion that does not name its adapters.
        folder: Path of the folder for all members. Members with the same
            configuration share a subfolder, named by the configuration's hash.
        runner: Callable that trains a run, see `local_runner.run_missing`.
            Default: runs the command in a separate process.
        processes: Number of members to train at the same time. Default: 1.

    Returns:
        `Config` of the fusion, with the paths of the trained adapters.

    Raises:
        ConfigError: If a setting is wrong or a member cannot be trained.
        DataError: If the data of a member are missing.
    """
    check_members_data(config)
    runs = member_plan.plan_members(config)
    folder = Path(folder).absolute()
    runner = runner or process_runner.ProcessRunner(processes)
    found = find_trained(runs, folder)
    missing = [run for run in runs if found[run.id] is None]
    if missing:
        print(stage(config, runs), flush=True)
        own = folder / member_plan.digest(runs)
        _train_missing(missing, own, runner, processes)
        found |= find_trained(missing, folder)
        for run in missing:
            if found[run.id] is None:
                path = finished_runs.find_run(run, own) or own / run.id
                raise ConfigError(of_no_use(run, path))
    folders = [found[run.id] for run in runs]
    return with_adapters(config, runs, folders)


def of_no_use(run: Run, folder: Path) -> str:
    """Returns a message about a finished member that `find_trained` rejects.

    It has a result, so it is not trained again.
    """
    return (
        f"{folder} holds a finished adapter of `{run.id}` that was trained on "
        "other data, or whose weights are gone. Remove that folder, or give a "
        "--model_dir in another folder."
    )


def check_members_data(config: Config) -> None:
    """Raises a `DataError` if the data of a fusion's member are missing.

    Does not read the data.

    Args:
        config: `Config` of a fusion that does not name its adapters.
    """
    runs = member_plan.plan_members(config)
    tasks = {
        name: own
        for run in runs
        for name, own in config_task.by_task(run.config).items()
    }
    # In parallel, because each check may take seconds on the network.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        found = pool.map(_why_missing, tasks.values())
        errors = dict(zip(tasks, found, strict=True))
    missing = [name for name in tasks if errors[name] is not None]
    if missing:
        there = [name for name in tasks if errors[name] is None]
        raise DataError(_without_data(config, runs, there, missing, errors))


def _why_missing(config: Config) -> DataError | None:
    """Returns a `DataError` if the training data are missing, else `None`."""
    try:
        task_data.check_data_exists(config)
    except DataError as error:
        return error
    return None


def stage(config: Config, runs: Sequence[Run]) -> str:
    """Returns a message for a command that trains a fusion's members first.

    The message lists the members' settings. `runs` train the members.
    """
    train = runs[0].config.train
    method = presets.preset_name([config.members.settings or {}])
    tasks = ", ".join(config.members.tasks)
    return (
        "Without --adapters, fusion first trains an adapter for each task of "
        f"`members.tasks`: {tasks}. Their settings are those of "
        f"`members.settings`: {method}, {train.epochs} epochs, learning rate "
        f"{train.learning_rate:g}. --epochs, --learning_rate and `method.*` "
        "do not apply to them; settings in `members.settings` do, such as "
        "--params_override=members.settings.train.epochs=..."
    )


def _without_data(
    config: Config, runs: Sequence[Run], there: Any, missing: Any, errors: Any
) -> str:
    names = f"[{','.join(there)}]" if there else "[task,task]"
    return (
        f"{stage(config, runs)} There are data for "
        f"{', '.join(there) or 'none of them'}, and none for "
        f"{', '.join(missing)}: {errors[missing[0]]} Add the data, or name "
        f"other tasks (--params_override=members.tasks={names}), or adapters "
        "that are trained already (--adapters=runs/a,runs/b)."
    )


def find_trained(runs: Sequence[Run], folder: Path) -> dict[Any, Any]:
    """Finds finished runs with the settings and data of the given runs.

    Looks next to the fusion's run folder, in the studies next to its study, and
    among the members that these studies trained for fusions. `folder` is the
    folder for all members.

    Returns:
        Dict from the id of each run to the finished run's folder, or to `None`
        if there is none.
    """
    studies = folder.parent.parent
    found = {}
    for run in runs:
        name = glob.escape(planned_run.run_id(run.config))
        own = sorted(folder.parent.glob("*/result.json"))
        others = sorted(studies.glob(f"*/{name}/result.json"))
        # Compare settings, not hashes: a new version's settings change hashes.
        member = f"*/{folder.name}/*/{run.id}/result.json"
        others += sorted(studies.glob(member))
        # The paths above miss it if the folder is given as `../members`.
        others += sorted(folder.glob(f"*/{run.id}/result.json"))
        found[run.id] = next(
            (
                path.parent
                for path in (*own, *others)
                if finished_runs.is_of(run, path.parent)
                and _was_trained_on_our_data(run, path.parent)
                and _has_adapters(run, path.parent)
            ),
            None,
        )
    return found


def _was_trained_on_our_data(run: Run, folder: Path) -> bool:
    result = earlier_runs.read_result(folder) or {}
    # A merged adapter has its target's configuration but was not trained.
    is_merged = "merged" in result
    return not is_merged and finished_runs.saw_our_data(run, folder)


def _has_adapters(run: Run, folder: Path) -> bool:
    """Returns whether the adapters of a finished run still exist.

    They may be missing although the run folder `folder` has a `result.json`.
    """
    folders = _adapter_runs(run, folder)
    return all((path / "adapter").is_dir() for path in folders)


def _adapter_runs(run: Run, folder: Path) -> list[Path]:
    """Returns the run folder that holds the adapter of each task.

    A run of one task has only its own folder. A multitask run has a run folder
    for each task in `folder`.
    """
    several = len(run.metrics) > 1
    return [folder / task for task in run.metrics] if several else [folder]


def _train_missing(
    runs: Sequence[Run], folder: Path, runner: Any, processes: int
) -> None:
    waiting: Any = runs
    while waiting:
        outcomes = local_runner.run_missing(waiting, folder, runner, processes)
        # The fusion of another task needs these too and is training them.
        waiting = [one.run for one in outcomes if one.is_elsewhere]
        if waiting:
            time.sleep(_SECONDS_TO_WAIT)
    for run in runs:
        if finished_runs.read_run_result(run, folder) is None:
            raise ConfigError(
                f"The adapter of task `{run.id}` was not trained: "
                f"{finished_runs.read_error(run, folder)} See "
                f"{folder / run.id / 'log.txt'}. The same command trains the "
                "missing ones."
            )


def with_adapters(
    config: Config,
    runs: Sequence[Run],
    folders: Sequence[Any],
) -> Config:
    """Returns the fusion's configuration with the paths of its adapters.

    `folders` has the folder of each run in `runs`. If the runs trained an
    encoder, the fusion uses it.
    """
    adapters, encoder = [], config.encoder
    for run, folder in zip(runs, folders, strict=True):
        adapters += _adapter_runs(run, folder)
        if len(run.metrics) > 1 and run.config.method.train_encoder:
            encoder = str(folder / "encoder")
    method = dataclasses.replace(
        config.method, adapters=tuple(map(str, adapters))
    )
    return dataclasses.replace(config, method=method, encoder=encoder)
