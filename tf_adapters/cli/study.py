"""`tf-adapters study NAME`: trains the runs of a study and reports on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tf_adapters.cli.command import Command
from tf_adapters.cli.command import Flag
from tf_adapters.cli.command import said
from tf_adapters.cli.command import with_options
from tf_adapters.common import keras_backend
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.extras import needs_extra


def run_study_command(
    options: Any, layer: dict[str, Any], arguments: Sequence[str]
) -> Any:
    """Runs the study that the arguments name, and returns the exit status.

    See `Command.run` for the arguments.
    """
    if len(arguments) != 1:
        raise ConfigError(
            "`tf-adapters study` takes the name of one study, or a YAML file. "
            f"--list=studies has the names. Received: {said(arguments)}"
        )
    from tf_adapters.cli import main

    return main.run_command(layer, with_options(options, study=arguments[0]))


def run_study_of_options(options: Any, layer: dict[str, Any]) -> int:
    """Runs the study that `options.study` names, and returns the exit status.

    `layer` is a nested dict of the settings that flags set.
    """
    if options.executor == "jax" and not options.report:
        keras_backend.use_backend("jax")
    # Imported here, because only studies need these packages, and before any
    # training, because the report at the end needs them.
    with needs_extra("studies", "A study"):
        from tf_adapters.papers.studies import study

    return study.run_studies(options, layer)


def table_of_studies() -> str:
    """Returns a table of all studies, with the cost of each."""
    from tf_adapters.papers.studies.grid import study_list

    return study_list.list_studies()


COMMAND = Command(
    name="study",
    summary="Trains the missing runs of a study, a grid of runs in YAML, and "
    "writes its tables and pictures. `tf-adapters --list=studies` names them.",
    usage="NAME|FILE|paper:NAME",
    examples=(
        "tf-adapters study he2021_figure8 --small",
        "tf-adapters study my_grid.yaml --study_processes=2",
        "tf-adapters study my_grid.yaml --report",
    ),
    groups={
        "What": (
            *("small", "two_cores", "one_gpu", "report", "model_dir"),
            "results_file",
        ),
        "Settings of all runs": (
            *("task", "method", "encoder", "data_dir", "seed", "epochs"),
            *("learning_rate", "batch_size", "max_length", "precision"),
            *("max_train_examples", "config_file", "params_override", "plugin"),
        ),
        "Where runs train": (
            *("study_processes", "executor", "ray_address", "ray_cpus"),
            *("ray_gpus", "verbose"),
        ),
    },
    run=run_study_command,
    own_flags=(Flag("model_dir", "Folder of the studies' folders.", "runs"),),
    common=(
        *("small", "two_cores", "one_gpu", "report", "results_file"),
        *("study_processes", "executor"),
    ),
)
