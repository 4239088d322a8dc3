"""The first stage of AdapterFusion: an adapter for each of several tasks.

Knowledge extraction, section 3.1 of Pfeiffer et al. 2021: where a fusion names
no trained adapters, `members.tasks` of its configuration are trained, each in a
process and a run folder of its own (ST-A), or together (MT-A). What is finished
is kept: a stopped command goes on from there, the fusions of other tasks with
the same settings share the adapters, and a finished run of the same settings
beside the fusion's own, or in a study beside, is taken as it is.
"""

import concurrent.futures
import dataclasses
import glob
import hashlib
from pathlib import Path
import time

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import DataError
from tf_adapters.config import presets
from tf_adapters.config import resolve
from tf_adapters.config import task as config_task
from tf_adapters.data.rows import sampling
from tf_adapters.data.rows import splits
from tf_adapters.launch import finished_runs
from tf_adapters.launch import local_runner
from tf_adapters.launch import planned_run
from tf_adapters.launch import process_runner
from tf_adapters.runs import earlier_runs

_SECONDS_TO_WAIT = 10


def train_members(config, folder, runner=None, processes=1):
    """Trains the members that are missing.

    Args:
        config: `Config` of a fusion without adapters.
        folder: Folder of all members. Those of one configuration lie in a
            folder of it that is named by a hash.
        runner: What trains a run, see `local_runner.run_missing`. Defaults to
            the command in a process of its own.
        processes: How many are trained at the same time.

    Returns:
        `Config` of the fusion over them.

    Raises:
        ConfigError: If a setting is wrong, data are missing, or one fails.
    """
    check_members_data(config)
    runs = plan_members(config)
    folder = Path(folder).absolute()
    runner = runner or process_runner.ProcessRunner(processes)
    found = _find_trained(runs, folder)
    missing = [run for run in runs if found[run.id] is None]
    if missing:
        print(_stage(config, runs), flush=True)
        folder = folder / _digest(runs)
        _train_missing(missing, folder, runner, processes)
    folders = [
        found[run.id] or finished_runs.find_run(run, folder) for run in runs
    ]
    return _with_adapters(config, runs, folders)


def check_members_data(config):
    """Raises a `DataError` if the data of a member are nowhere; reads none.

    Args:
        config: `Config` of a fusion without adapters.
    """
    runs = plan_members(config)
    tasks = {
        name: own
        for run in runs
        for name, own in config_task.by_task(run.config).items()
    }
    # At the same time: each may ask the network, which takes seconds.
    with concurrent.futures.ThreadPoolExecutor() as pool:
        found = pool.map(_why_missing, tasks.values())
        errors = dict(zip(tasks, found, strict=True))
    missing = [name for name in tasks if errors[name] is not None]
    if missing:
        there = [name for name in tasks if errors[name] is None]
        raise DataError(_without_data(config, runs, there, missing, errors))


def _why_missing(config):
    """Returns the error of a member's missing data, or `None`."""
    try:
        splits.check_data_exists(config)
    except DataError as error:
        return error
    return None


def _stage(config, runs):
    """Returns what fusion does first, with which settings."""
    train = runs[0].config.train
    method = presets.preset_name([config.members.settings or {}])
    tasks = ", ".join(config.members.tasks)
    return (
        "Without --adapters, fusion first trains an adapter for each task of "
        f"`members.tasks`: {tasks}. Their settings are those of "
        f"`members.settings`: {method}, {train.epochs} epochs, learning rate "
        f"{train.learning_rate:g}. --epochs and --learning_rate do not reach "
        "them; --params_override=members.settings.train.epochs=... does."
    )


def _without_data(config, runs, there, missing, errors):
    names = f"[{','.join(there)}]" if there else "[task,task]"
    return (
        f"{_stage(config, runs)} There are data for "
        f"{', '.join(there) or 'none of them'}, and none for "
        f"{', '.join(missing)}: {errors[missing[0]]} Add the data, or name "
        f"other tasks (--params_override=members.tasks={names}), or adapters "
        "that are trained already (--adapters=runs/a,runs/b)."
    )


def _find_trained(runs, folder):
    """Returns the folder of a finished run of each one's settings, or `None`.

    It lies beside the fusion's own, in a study beside, or among its members.
    """
    studies = folder.parent.parent
    found = {}
    for run in runs:
        name = glob.escape(planned_run.run_id(run.config))
        own = sorted(folder.parent.glob("*/result.json"))
        beside = sorted(studies.glob(f"*/{name}/result.json"))
        # By content: settings that are new since have their defaults there.
        member = f"*/{folder.name}/*/{run.id}/result.json"
        beside += sorted(studies.glob(member))
        found[run.id] = next(
            (
                path.parent
                for path in (*own, *beside)
                if finished_runs.is_of(run, path.parent)
                and _saw_our_data(run, path)
            ),
            None,
        )
    return found


def _saw_our_data(run, path):
    """Returns whether a finished run trained on the data that lie there now."""
    found = {
        name: sampling.fingerprints(splits.load_rows(own, splits.get_task(own)))
        for name, own in config_task.by_task(run.config).items()
    }
    ours = found if len(found) > 1 else next(iter(found.values()))
    theirs = earlier_runs.read_result(path.parent)
    # A merge has the configuration of its target, and is no run of it.
    return "merged" not in theirs and theirs.get("data_fingerprint") == ours


def _train_missing(runs, folder, runner, processes):
    outcomes = local_runner.run_missing(runs, folder, runner, processes)
    while any(outcome.is_elsewhere for outcome in outcomes):
        # The fusion of another task trains it: both need it.
        time.sleep(_SECONDS_TO_WAIT)
        outcomes = local_runner.run_missing(runs, folder, runner, processes)
    for run in runs:
        if finished_runs.read_run_result(run, folder) is None:
            raise ConfigError(
                f"The adapter of task `{run.id}` was not trained: "
                f"{finished_runs.read_error(run, folder)} See "
                f"{folder / run.id / 'log.txt'}. The same command goes on with "
                "what is missing."
            )


def _with_adapters(config, runs, folders):
    """Returns the configuration of the fusion over trained members."""
    adapters, encoder = [], config.encoder
    for run, folder in zip(runs, folders, strict=True):
        several = len(run.metrics) > 1
        adapters += [folder / task for task in run.metrics if several] or [
            folder
        ]
        if several and run.config.method.train_encoder:
            encoder = str(folder / "encoder")
    method = dataclasses.replace(
        config.method, adapters=tuple(map(str, adapters))
    )
    return dataclasses.replace(config, method=method, encoder=encoder)


def plan_members(config):
    """Returns the runs of the first stage.

    One for each of `members.tasks`, named as its task; or, where the members'
    method trains several tasks together (MT-A), one for all of them.
    """
    tasks = config.members.tasks
    if len(set(tasks)) < len(tasks):
        raise ConfigError(
            f"`members.tasks` names a task twice: {', '.join(tasks)}."
        )
    settings = config.members.settings or {}
    if presets.preset_name([settings]) == "multitask":
        together = {"method": {"name": "multitask", "tasks": list(tasks)}}
        return [_run(config, "multitask", together)]
    return [_run(config, task, {"task": task}) for task in tasks]


def _run(config, name, layer):
    data = dataclasses.asdict(config.data)
    if name != config.task:
        data.update(task_file=None, file=None, eval_languages=())
    shared = {
        "encoder": config.encoder,
        "seed": config.seed,
        "distribution_strategy": config.distribution_strategy,
        "data": data,
        "train": {"precision": config.train.precision},
    }
    try:
        member = resolve.resolve_config(
            shared, config.members.settings or {}, layer
        )
    except ConfigError as error:
        raise ConfigError(f"`members`, `{name}`: {error}") from error
    metrics = planned_run.first_metrics(member)
    member = resolve.with_absolute_paths(member)
    return planned_run.Run(name, {}, member, metrics)


def _digest(runs):
    """Returns a hash of the settings that the runs share."""
    settings = resolve.to_dict(runs[0].config)
    data = {
        **settings["data"],
        **{"task_file": None, "file": None, "eval_languages": []},
    }
    text = planned_run.identity({**settings, "task": "", "data": data})
    return hashlib.sha256(text.encode()).hexdigest()[:10]
