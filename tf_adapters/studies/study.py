"""A study: a grid of runs, from a YAML file to a table.

`declaration` reads the file, `plan` makes runs of it, `local_runner` trains
those that are missing, and `report` makes the tables.
"""

import json
from pathlib import Path
import shlex

from tf_adapters.common.errors import ConfigError
from tf_adapters.config import resolve
from tf_adapters.studies import declaration
from tf_adapters.studies import local_runner
from tf_adapters.studies import plan as study_plan
from tf_adapters.studies import report as study_report
from tf_adapters.studies import settings as study_settings


def run(options, flag_layer, runner=None):
    """Trains a study's missing runs and writes its tables.

    The study's folder is `<model_dir>/<name>`, with a folder for each run and
    `table.md`, `table.csv` and `runs.csv`.

    Args:
        options: Object with `study`, `report`, `small`, `two_cores`,
            `model_dir`, `config_file`, `params_override`, `study_processes`,
            `executor`, `ray_address`, `ray_cpus` and `ray_gpus`.
        flag_layer: Nested dict of the settings that flags give.
        runner: What trains a run, see `local_runner.run_missing`. Defaults to
            the command in a process of its own, where `executor` says.

    Returns:
        Exit status: 0, or 1 if a run failed.
    """
    path = declaration.find_study(options.study)
    flags = _flags(options, flag_layer)
    block = _block(options)
    study, planned = study_plan.load_study(path, block, flags)
    name = path.stem + (f"_{block}" if block else "")
    _check(options)
    folder = Path(options.model_dir or "runs").expanduser() / name
    if not options.report:
        processes = options.study_processes or 1
        if runner is None:
            runner, processes = _executor(options)
        local_runner.run_missing(planned, folder, runner, processes)
    report = _report(name, study, planned, folder, _command(options, flags))
    study_report.write_report(report, folder)
    print(f"\n{report.markdown}\nIn {folder}: table.md, table.csv, runs.csv")
    failed = [row for row in report.runs if row["state"] == "failed"]
    for row in failed:
        log = folder / row["run"] / "log.txt"
        print(f"Failed: {row['run']}: {row['error']} See {log}")
    return 1 if failed or not (options.report or report.complete) else 0


def _block(options):
    """Returns the name of the block that a flag asks for, or `None`."""
    asked = [name for name in declaration.BLOCKS if getattr(options, name)]
    if len(asked) > 1:
        raise ConfigError(
            f"--{asked[0]} and --{asked[1]} are two forms of a study. Give one."
        )
    return asked[0] if asked else None


def _check(options):
    if "://" in (options.model_dir or ""):
        raise ConfigError(
            "A study's processes share a folder of a file system, and "
            f"--model_dir={options.model_dir} is an address. Give a folder; "
            "single runs take addresses."
        )
    if options.overwrite:
        raise ConfigError(
            "A study keeps what is finished. To train again, remove the runs' "
            "folders, or give another --model_dir."
        )


def _executor(options):
    """Returns what trains a run, and how many of them at a time."""
    if options.executor == "local":
        processes = options.study_processes or 1
        return local_runner.ProcessRunner(processes), processes
    # Here, not above: Ray need not be installed.
    from tf_adapters.studies import ray_runner

    runner = ray_runner.RayRunner(
        options.ray_address, options.ray_cpus, options.ray_gpus
    )
    return runner, options.study_processes or runner.capacity()


def _flags(options, flag_layer):
    """Returns what the command line sets, later flags winning as in a run."""
    layers = map(resolve.parse_override, options.params_override)
    if options.config_file:
        layers = [resolve.load_yaml(options.config_file), *layers]
    flags = {}
    for layer in [*layers, flag_layer]:
        settings = study_settings.settings_of(layer)
        flags.update(settings)
    return flags


def _report(name, study, planned, folder, command):
    results = {
        run.id: local_runner.read_run_result(run, folder) for run in planned
    }
    errors = {run.id: local_runner.read_error(run, folder) for run in planned}
    if not any(results.values()):
        example = next((text for text in errors.values() if text), "")
        hint = "Leave --report out to start them."
        raise ConfigError(
            f"None of the {len(planned)} runs in {folder} is finished. "
            + (f"One failed: {example}" if example else hint)
        )
    return study_report.make_report(
        name, study, planned, results, errors, command
    )


def _command(options, flags):
    """Returns the command line that makes the same tables."""
    command = ["tf-adapters", f"--study={options.study}"]
    if _block(options):
        command.append(f"--{_block(options)}")
    for key, value in flags.items():
        value = value if isinstance(value, str) else json.dumps(value)
        command.append(f"--params_override={key}={value}")
    return shlex.join(command)
