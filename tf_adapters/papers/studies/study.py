"""Runs a study, which is a grid of runs that a YAML file declares.

`declaration` reads the file, `plan` lists the runs, `local_runner` trains the
missing ones, and `report` makes tables and pictures.
"""

from __future__ import annotations

from collections.abc import Callable
import functools
import json
import os
from pathlib import Path
import shlex
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.settings_text import load_setting
from tf_adapters.config import plugins
from tf_adapters.config import resolve
from tf_adapters.launch import finished_runs
from tf_adapters.launch import local_runner
from tf_adapters.launch import process_runner
from tf_adapters.launch import together
from tf_adapters.papers.studies import whole_paper
from tf_adapters.papers.studies.grid import blocks
from tf_adapters.papers.studies.grid import declaration
from tf_adapters.papers.studies.grid import plan as study_plan
from tf_adapters.papers.studies.grid import settings as study_settings
from tf_adapters.papers.studies.report import cells as study_cells
from tf_adapters.papers.studies.report import figures as figures_lib
from tf_adapters.papers.studies.report import files
from tf_adapters.papers.studies.results_file import ResultsFile
from tf_adapters.runs import earlier_runs

if TYPE_CHECKING:
    from tf_adapters.papers.studies.grid.declaration import Study


_FILES = ("table.md", "table.csv", "table.tex", "runs.csv", "claims.csv")
_FILES += ("report.html",)


def run_studies(
    options: Any,
    flag_layer: dict[str, Any],
    runner: Callable[..., Any] | None = None,
) -> Any:
    """Trains the missing runs of a study or a paper, and writes reports.

    The study's folder is `<model_dir>/<name>`, with a folder for each run,
    `table.md`, `table.csv`, `table.tex`, `runs.csv`, `claims.csv`,
    `report.html`, and the pictures in `figures`.

    Args:
        options: Parsed flags, with `study`, `report`, `small`, `two_cores`,
            `one_gpu`, `model_dir`, `results_file`, `config_file`,
            `params_override`, `study_processes`, `executor`, `ray_address`,
            `ray_cpus` and `ray_gpus`.
        flag_layer: Nested dict of the settings that flags give.
        runner: Function that trains a run, see `local_runner.run_missing`. By
            default, each run is a separate process, on the machines that
            `executor` selects.

    Returns:
        Exit status: 1 if a run failed, or if a run is missing and
        `options.report` is not set, else 0.
    """
    if options.study.startswith(whole_paper.PREFIX):
        return whole_paper.run_paper(
            options.study,
            _block(options),
            lambda name: _run(name, options, flag_layer, runner),
        )
    return _run(options.study, options, flag_layer, runner)


def _run(
    study_name: Any,
    options: Any,
    flag_layer: dict[str, Any],
    runner: Any,
) -> int:
    path = declaration.find_study(study_name)
    flags = _flags(options, flag_layer)
    block = _block(options)
    study, planned = study_plan.load_study(path, block, flags)
    name = path.stem + (f"_{block}" if block else "")
    _check(options)
    folder = Path(options.model_dir or "runs").expanduser() / name
    results = _results_file(options, planned, folder)
    if not options.report:
        figures_lib.check_figures(study)
        _train(options, planned, folder, runner, results and results.add)
    found = {run.id: finished_runs.find_run(run, folder) for run in planned}
    command = _command(study_name, options, flags, found)
    tables = _tables(study, planned, found, folder)
    files.write_tables(tables, folder)
    write = functools.partial(
        files.write_study_report, name, command, study, planned, tables, folder
    )
    pictures = _pictures(study, planned, tables.runs, folder, write)
    print(f"\n{write(pictures)}\nIn {folder}: {', '.join(_FILES)}")
    for picture in pictures:
        print(f"{picture.png}: {picture.caption}")
    failed = [row for row in tables.runs if row["state"] == "failed"]
    for row in failed:
        log = folder / row["run"] / "log.txt"
        # Runs that trained together have no log.
        see = f" See {log}" if log.exists() else ""
        print(f"Failed: {row['run']}: {row['error']}{see}")
    return 1 if failed or not (options.report or tables.complete) else 0


def _results_file(options: Any, planned: Any, folder: Path) -> Any:
    """Returns the `ResultsFile` of the flag `--results_file`, or `None`.

    Also copies results of finished runs from this file to the study's folder,
    and from the folder to the file.
    """
    if not options.results_file:
        return None
    results = ResultsFile(options.results_file)
    results.restore(planned, folder)
    results.add_finished(planned, folder)
    return results


def _pictures(
    study: Study, planned: Any, rows: Any, folder: Path, write: Any
) -> Any:
    """Makes a study's pictures and returns a list of `figures.Made`.

    After an error, calls `write`, which writes the report without pictures, and
    then raises the error again.
    """
    try:
        return figures_lib.make_figures(study, planned, folder, rows)
    except BaseException as error:
        # No pictures in this report: existing ones may show earlier runs.
        write()
        if isinstance(error, KeyboardInterrupt):
            print(
                "\n"
                "Stopped before all pictures were made. The same command with "
                "--report makes the missing ones.",
                flush=True,
            )
        raise


def _block(options: Any) -> str | None:
    """Returns the reduced form that a flag selects ("small"), or `None`."""
    asked = [name for name in blocks.BLOCKS if getattr(options, name)]
    if len(asked) > 1:
        raise ConfigError(
            f"--{asked[0]} and --{asked[1]} are two forms of a study. Give one."
        )
    return asked[0] if asked else None


def _check(options: Any) -> None:
    if "://" in (options.model_dir or ""):
        raise ConfigError(
            "A study's processes share a folder in a file system, but "
            f"--model_dir={options.model_dir} is an address. Give a folder; "
            "single runs take addresses."
        )
    if options.overwrite:
        raise ConfigError(
            "A study keeps what is finished. To train again, remove the runs' "
            "folders, or give another --model_dir."
        )


def _train(
    options: Any, planned: Any, folder: Path, runner: Any, store: Any
) -> None:
    """Trains the missing runs, see `local_runner.run_missing`."""
    processes = options.study_processes
    if runner is None and options.executor == "jax":
        together.run_missing(
            planned, folder, processes or together.AT_ONCE, store
        )
        return
    if runner is None:
        runner, processes = _executor(options)
    local_runner.run_missing(planned, folder, runner, processes or 1, store)


def _executor(options: Any) -> tuple[Any, Any]:
    """Returns the function that trains a run, and the number of processes."""
    if options.executor == "local":
        processes = options.study_processes or 1
        return process_runner.ProcessRunner(processes), processes
    # Imported here, because Ray is optional.
    from tf_adapters.launch import ray_runner

    runner = ray_runner.RayRunner(
        options.ray_address, options.ray_cpus, options.ray_gpus
    )
    return runner, options.study_processes or runner.capacity()


def _flags(options: Any, flag_layer: dict[str, Any]) -> dict[str, Any]:
    """Returns a dict from dotted names to the settings that flags give.

    `--params_override` overrides `--config_file`. `flag_layer`, a nested dict
    of the settings from all other flags, overrides both.
    """
    layers = map(resolve.parse_override, options.params_override)
    if options.config_file:
        path = Path(options.config_file).expanduser()
        layers = [resolve.load_yaml(path), *layers]
    flags = {}
    for layer in [*layers, flag_layer]:
        layer = resolve.without_empty_sections(layer)
        settings = study_settings.settings_of(layer)
        flags.update(settings)
    return flags


def _tables(study: Study, planned: Any, found: Any, folder: Path) -> Any:
    results = {
        name: path and earlier_runs.read_result(path)
        for name, path in found.items()
    }
    errors = {
        run.id: "" if found[run.id] else finished_runs.read_error(run, folder)
        for run in planned
    }
    if not any(results.values()):
        failed = [text for text in errors.values() if text]
        raise ConfigError(
            f"None of the {len(planned)} runs in {folder} is finished. "
            + (
                f"{len(failed)} failed, the first one with: {failed[0]}"
                if failed
                else _elsewhere(folder)
            )
        )
    return study_cells.make_tables(
        study, planned, results, errors, _relative(found, folder)
    )


def _elsewhere(folder: Path) -> str:
    """Returns a hint for the error that a study has no finished runs."""
    stem = folder.name
    for block in blocks.BLOCKS:
        stem = stem.removesuffix(f"_{block}")
    for block in (None, *blocks.BLOCKS):
        other = folder.parent / (f"{stem}_{block}" if block else stem)
        if other != folder and (other / "runs.csv").exists():
            what = (
                f"add --{block}" if block else "leave out the flag of the block"
            )
            return f"{other} has a report: {what} to get it."
    if (folder.parent / "runs.csv").exists():
        return (
            f"{folder.parent} is the folder of a study: --model_dir must be "
            "the folder that contains it."
        )
    return "Leave --report out to start them."


def _relative(found: Any, folder: Path) -> dict[Any, Any]:
    """Returns a dict from run id to a path relative to the study's folder."""
    return {
        name: os.path.relpath(path or folder / name, folder)
        for name, path in found.items()
    }


def _command(study_name: Any, options: Any, flags: Any, found: Any) -> Any:
    """Returns the command line that makes a study's tables again."""
    command = ["tf-adapters", f"--study={study_name}"]
    if _block(options):
        command.append(f"--{_block(options)}")
    if options.model_dir:
        command.append(f"--model_dir={options.model_dir}")
    if options.results_file:
        command.append(f"--results_file={options.results_file}")
    flags = {"data.data_dir": _data_dir(found)} | flags
    if flags["data.data_dir"] is None:
        del flags["data.data_dir"]
    for key, value in flags.items():
        value = value if isinstance(value, str) else json.dumps(value)
        command.append(f"--params_override={key}={value}")
    command += plugins.plugin_flags()
    return shlex.join(command)


def _data_dir(found: Any) -> Any:
    """Returns the data folder that all finished runs read, or `None`.

    The command line in the report gives this folder, even if the report was
    made without `--data_dir`.
    """
    folders = {
        load_setting(path / "config.yaml", "data.data_dir")
        for path in found.values()
        if path is not None
    }
    return folders.pop() if len(folders) == 1 else None
