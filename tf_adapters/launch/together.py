"""Trains a study's runs in groups, each as one JAX program."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import time
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import own_files
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.common.text_files import replace_text
from tf_adapters.config import resolve
from tf_adapters.launch import finished_runs
from tf_adapters.launch import fusion_members
from tf_adapters.launch import local_runner
from tf_adapters.launch import member_plan
from tf_adapters.launch import progress_lines
from tf_adapters.launch.local_runner import RunOutcome
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import folder_lock
from tf_adapters.runs import left_files
from tf_adapters.training.device_errors import DeviceMemoryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tf_adapters.config.settings import Config
    from tf_adapters.launch.planned_run import Run

# This many runs of MiniLM fit into 80 GB, even if all weights train.
AT_ONCE = 20


@dataclasses.dataclass(frozen=True)
class _Job:
    """A run to train.

    Attributes:
        run: `Run`.
        path: Path of the run folder.
        config: `Config` to train with: a fusion's names its trained members.
        error: Text of an error that prevents the training, or "".
    """

    run: Run
    path: Path
    config: Config
    error: str = ""


def run_missing(
    runs: list[Run],
    folder: Path,
    at_once: int = AT_ONCE,
    store: Any = None,
    trainer: Any = None,
) -> None:
    """Trains the runs of a study that are not finished, several at once.

    Runs that differ only in `seed` and `train.learning_rate` form a group. If a
    group cannot be trained because of its settings, its data or the memory, the
    others are still trained. The members of fusions are trained first, in
    groups of their own.

    Args:
        runs: List of `Run`.
        folder: Path of the study's folder. Each run has a subfolder that is
            named by its id.
        at_once: Largest number of runs that train as one program. Halved if the
            memory of the device does not suffice.
        store: See `local_runner.run_missing`.
        trainer: `TogetherTrainer`. Default: a new one, which saves adapters.

    Raises:
        ConfigError: If the settings of a run, or of a fusion's member, exclude
            this kind of training.
    """
    # Imported here, because it imports JAX.
    from tf_adapters.runs import runs_together

    found = {run.id: finished_runs.find_run(run, folder) for run in runs}
    missing = [run for run in runs if found[run.id] is None]
    for run in missing:
        _check(run.config)
    print(progress_lines.what_is_there(found, folder), flush=True)
    progress_lines.warn_of_other_data(runs, found)
    trainer = trainer or runs_together.TogetherTrainer()
    progress = progress_lines.ProgressLines(len(runs), len(missing))
    with local_runner.termination_as_interruption():
        try:
            for outcome in _outcomes(missing, folder, at_once, trainer):
                if store and outcome.result is not None:
                    store(outcome.run, outcome.result)
                print(progress.line(outcome), flush=True)
        except KeyboardInterrupt:
            print("\nStopped. The same command resumes from here.")
            raise


def _check(config: Config) -> None:
    """Raises a `ConfigError` if a run, or a member, cannot be trained so."""
    from tf_adapters.runs import together_checks

    together_checks.check_settings(config)
    if member_plan.trains_members(config):
        for member in member_plan.plan_members(config):
            together_checks.check_settings(member.config, is_member=True)


def _outcomes(
    runs: list[Run], folder: Path, at_once: int, trainer: Any
) -> Iterator[RunOutcome]:
    """Trains runs, then fusions with their members; yields each outcome."""
    fusions = [run for run in runs if member_plan.trains_members(run.config)]
    jobs = [
        _Job(run, folder / run.id, run.config)
        for run in runs
        if run not in fusions
    ]
    for ended in _train(jobs, at_once, trainer):
        yield _outcome(*ended)
    jobs = _with_members(fusions, folder, at_once, trainer)
    for ended in _train(jobs, at_once, trainer):
        yield _outcome(*ended)


def _outcome(job: _Job, error: str, seconds: float) -> RunOutcome:
    result = None if error else earlier_runs.read_result(job.path)
    return RunOutcome(job.run, result, error, seconds)


def _with_members(
    runs: list[Run], folder: Path, at_once: int, trainer: Any
) -> list[_Job]:
    """Trains the missing members of fusions; returns the fusions' jobs."""
    members = (folder / "members").absolute()
    plans = [member_plan.plan_members(run.config) for run in runs]
    paths, missing = [], {}
    for plan in plans:
        found = fusion_members.find_trained(plan, members)
        for member in plan:
            if found[member.id] is None:
                path = members / member_plan.digest(plan) / member.id
                found[member.id] = path
                is_there = finished_runs.is_finished(member, path)
                error = is_there and fusion_members.of_no_use(member, path)
                missing[path] = _Job(member, path, member.config, error or "")
        paths.append([found[member.id] for member in plan])
    if missing:
        print(f"Members of the fusions: {len(missing)} to train.", flush=True)
    errors = {
        job.path: error
        for job, error, _ in _train(list(missing.values()), at_once, trainer)
    }
    return [
        _Job(
            run,
            folder / run.id,
            fusion_members.with_adapters(run.config, plan, own),
            _of_members([errors.get(path, "") for path in own]),
        )
        for run, plan, own in zip(runs, plans, paths, strict=True)
    ]


def _of_members(errors: list[str]) -> str:
    """Returns the error of a fusion whose members have these errors, or ""."""
    failed = [e for e in errors if e and e != local_runner.ELSEWHERE]
    if failed:
        return f"A member failed: {failed[0]}"
    return local_runner.ELSEWHERE if any(errors) else ""


def _train(
    jobs: list[_Job], at_once: int, trainer: Any
) -> Iterator[tuple[_Job, str, float]]:
    """Trains runs; yields each with its error or "", and its seconds.

    Halves `at_once` if the memory of the device does not suffice.
    """
    able = []
    for job in jobs:
        if job.error:
            has_result = (job.path / "result.json").exists()
            error = job.error if has_result else _noted(job, job.error)
            yield job, error, 0.0
        elif local_runner.is_finished_otherwise(job.run, job.path):
            yield job, local_runner.FINISHED_OTHERWISE, 0.0
        else:
            able.append(job)
    while able:
        group = _groups(able, at_once)[0]
        started = time.perf_counter()
        try:
            errors = _train_group(group, trainer)
        except DeviceMemoryError:
            at_once = len(group) // 2
            print(
                f"The memory of the device does not suffice for {len(group)} "
                f"runs at once. Training at most {at_once}.",
                flush=True,
            )
            continue
        able = [job for job in able if job not in group]
        seconds = (time.perf_counter() - started) / len(group)
        for job, error in zip(group, errors, strict=True):
            yield job, _noted(job, error), seconds


def _groups(jobs: list[_Job], at_once: int) -> list[list[_Job]]:
    """Divides runs into groups that can be trained together.

    A group has at most `at_once` runs. Groups of the same settings have about
    the same size.
    """
    by_settings: dict[str, list[_Job]] = {}
    for job in jobs:
        settings = resolve.to_dict(job.config)
        settings["seed"] = settings["train"]["learning_rate"] = None
        # Each seed's fusion has members of its own, unless the study names
        # the adapters to combine.
        declared = resolve.to_dict(job.run.config)["method"]
        settings["method"]["adapters"] = declared.get("adapters")
        key = json.dumps(settings, sort_keys=True)
        by_settings.setdefault(key, []).append(job)
    found = []
    for group in by_settings.values():
        parts = math.ceil(len(group) / at_once)
        size = math.ceil(len(group) / parts)
        found += [group[i : i + size] for i in range(0, len(group), size)]
    return found


def _train_group(group: list[_Job], trainer: Any) -> list[str]:
    """Trains a group in the runs' folders; returns the text of each error.

    A run whose folder cannot be used does not stop the others.

    Raises:
        DeviceMemoryError: If fewer runs at once may fit into the memory.
    """
    errors, free = {}, []
    with contextlib.ExitStack() as locks:
        for job in group:
            error = _prepare(job, locks)
            if error is None:
                free.append(job)
            else:
                errors[job.path] = error
        errors |= zip(
            [job.path for job in free],
            _train_in_folders(free, trainer),
            strict=True,
        )
    return [errors[job.path] for job in group]


def _prepare(job: _Job, locks: contextlib.ExitStack) -> str | None:
    """Locks a run's folder, and removes an earlier run's files from it.

    Returns:
        `None` if the run can be trained now. Otherwise the text of an error, or
        "" if another process has finished the run.
    """
    try:
        own_files.make_folder(job.path)
        locks.callback(folder_lock.lock_folder(job.path).release)
    except ConfigError:
        return local_runner.ELSEWHERE
    except UserError as error:
        return str(error)
    if finished_runs.is_finished(job.run, job.path):
        return ""
    left_files.remove_run(job.path)
    # Left by another executor.
    own_files.remove(job.path / "log.txt")
    return None


def _train_in_folders(group: list[_Job], trainer: Any) -> list[str]:
    """Trains runs whose folders are locked; returns the text of each error."""
    if not group:
        return []
    try:
        return trainer.train(
            [job.config for job in group],
            [job.path for job in group],
            [job.run.config for job in group],
        )
    except UserError as error:
        if isinstance(error, DeviceMemoryError) and len(group) > 1:
            raise
        return [str(error)] * len(group)


def _noted(job: _Job, error: str) -> str:
    """Writes or removes `error.txt` in a run's folder; returns the error."""
    path = job.path / "error.txt"
    if error == local_runner.ELSEWHERE:
        return error  # The other process writes this file.
    if error:
        own_files.make_folder(job.path)
        replace_text(path, error + "\n")
    else:
        own_files.remove(path)
    return error
