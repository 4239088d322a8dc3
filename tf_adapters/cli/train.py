"""`tf-adapters train`: checks the settings, trains, and prints the result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.cli import members
from tf_adapters.cli import option_checks
from tf_adapters.cli.command import Command
from tf_adapters.cli.command import Flag
from tf_adapters.cli.command import check_no_arguments
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import presets
from tf_adapters.config import resolve
from tf_adapters.config import settings as config_settings
from tf_adapters.config import task as config_task
from tf_adapters.runs import remote_folder
from tf_adapters.runs import summary
from tf_adapters.runs import task_data
from tf_adapters.text import defaults as text_defaults

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config


# Keys of `result.json` to print: for a run of several tasks, for a run of one
# task, and for a search for a network without an encoder.
_SHOWN_OF_TASKS = ("examples_per_second", "padding_share", "seconds")
_SHOWN = ("encoder_weights", *_SHOWN_OF_TASKS)
_SHOWN_OF_SEARCH = ("settings", "trials", "trained_weights")


def run_train(
    options: Any, layer: dict[str, Any], arguments: Sequence[str]
) -> Any:
    """Trains a run and returns the exit status.

    See `Command.run` for the arguments.
    """
    hint = ""
    if arguments:
        hint = f" Is this a table of texts: --data={arguments[0]}?"
    check_no_arguments("train", arguments, hint)
    named = {"task", "method"} & set(layer) or layer["data"]
    option_checks.check_data_named(
        named or options.config_file or options.params_override
    )
    from tf_adapters.cli import main

    return main.run_command(layer, options)


def train_command(config: Config, model_dir: Path, options: Any) -> None:
    """Trains a run, unless it is finished, and prints its result.

    Args:
        config: `Config` of the run.
        model_dir: Path of the run folder.
        options: See `main.run_command`.
    """
    declared = resolve.with_absolute_paths(config)
    _join_cluster(config)
    if len(config_task.by_task(config)) > 1:
        _train_together(declared, model_dir, options)
        return
    if not model_dir.exists():
        members.check_members_train(config, model_dir)
    data = task_data.load_task_data(config)
    if _is_finished(declared, model_dir, options, data.fingerprints):
        return
    summary.print_labels(data.task, data.rows, config)
    train_alone = config.method.own_training()
    if train_alone is not None:
        result = train_alone(
            declared,
            data,
            model_dir,
            test=options.mode == "train_and_eval",
            overwrite=options.overwrite,
        )
        summary.print_search(result, declared, model_dir)
        return
    if config.data.file:
        summary.print_plan(config, data.rows)
    # Imported only after the data are found, because this takes seconds.
    from tf_adapters.runs import whole_run

    config = members.with_members(declared, model_dir, options, train_command)
    result = whole_run.train_run(
        config,
        data,
        model_dir,
        test=options.mode == "train_and_eval",
        overwrite=options.overwrite,
        declared=declared,
    )
    summary.print_run(result, config, model_dir)


def _join_cluster(config: Config) -> None:
    """Creates the distribution strategy before TensorFlow starts, if needed.

    It is needed on several machines, and if JAX is to have the GPUs.
    """
    on_cluster = config.distribution_strategy in config_settings.CLUSTERS
    if on_cluster or config.backend == "jax":
        from tf_adapters.runs import strategies

        strategies.strategy_of(config)


def _is_finished(
    config: Config,
    model_dir: Path,
    options: Any,
    fingerprints: Any,
) -> bool:
    """Returns whether a run is finished; if so, prints its result.

    `fingerprints` has the fingerprints of the run's data. With `--overwrite`,
    returns `False`.
    """
    if options.overwrite:
        return False
    result = _find_finished(config, model_dir, fingerprints)
    if result is None:
        return False
    print(
        f"{remote_folder.address(model_dir)} holds this run, which has "
        "finished; --overwrite trains it again."
    )
    _check_shown(result, model_dir)
    if _lacks_test(result, options):
        print(
            "Its test split was not evaluated: `tf-adapters eval "
            f"{remote_folder.address(model_dir)}` does."
        )
    if "tasks" in result:
        summary.print_tasks(result, config, model_dir)
    elif "best_trial" in result:
        summary.print_search(result, config, model_dir)
    else:
        summary.print_run(result, config, model_dir)
    return True


def _lacks_test(result: dict[str, Any], options: Any) -> bool:
    """Returns whether a run was to be tested, but was only trained."""
    has_test = "test" in result.get("data_fingerprint", {})
    return (
        options.mode == "train_and_eval"
        and has_test
        and result.get("test") is None
        and "best_step" in result
    )


def _check_shown(result: dict[str, Any], model_dir: Path) -> None:
    """Raises a `ConfigError` if a result lacks a value that is printed."""
    shown = _SHOWN_OF_SEARCH
    if "best_trial" not in result:
        shown = _SHOWN_OF_TASKS if "tasks" in result else _SHOWN
    lacking = [key for key in shown if key not in result]
    if lacking:
        from tf_adapters.runs import earlier_runs

        raise earlier_runs.damaged_result(model_dir, f"it lacks `{lacking[0]}`")


def _find_finished(config: Config, model_dir: Path, fingerprints: Any) -> Any:
    """Returns the content of a finished run's `result.json`, or `None`."""
    if config.distribution_strategy in config_settings.CLUSTERS:
        # Only the first worker looks: other workers may not see the folder.
        from tf_adapters.runs import run_folder_of_workers
        from tf_adapters.runs import strategies
        from tf_adapters.training import workers

        strategy = strategies.strategy_of(config)
        with workers.losses_as_stops(strategy):
            return run_folder_of_workers.finished_on_chief(
                strategy, model_dir, config, fingerprints
            )
    if not model_dir.exists():
        return None
    from tf_adapters.runs import earlier_runs

    return earlier_runs.finished_result(model_dir, config, fingerprints)


def _train_together(config: Config, model_dir: Path, options: Any) -> None:
    data = {
        name: task_data.load_task_data(one)
        for name, one in config_task.by_task(config).items()
    }
    if config.pretrain.steps or config.init_adapter or config.stack_on:
        raise ConfigError(
            "Tasks that train together start from the encoder as it is: leave "
            "--pretrain_steps, --init_adapter and --stack_on out."
        )
    if config.data.eval_languages:
        raise ConfigError(
            "--eval_languages is for runs of one task: train it alone, or "
            "evaluate it afterwards with --mode=eval --model_dir="
            f"{model_dir}/<task> --eval_languages=..."
        )
    fingerprints = {name: one.fingerprints for name, one in data.items()}
    if _is_finished(config, model_dir, options, fingerprints):
        return
    from tf_adapters.runs import multitask

    result = multitask.train_multitask(
        config,
        data,
        model_dir,
        test=options.mode == "train_and_eval",
        overwrite=options.overwrite,
    )
    summary.print_tasks(result, config, model_dir)


COMMAND = Command(
    name="train",
    summary="Trains an adapter on a table of texts and labels, or on a task "
    "with a name, evaluates it, and writes a run folder. The same command "
    "resumes a stopped run.",
    usage="--data=FILE --text=COLUMN --label=COLUMN",
    examples=(
        "tf-adapters train --data=reviews.csv --text=review --label=stars",
        "tf-adapters train --data=pairs.csv --text=first,second --label=is \\",
        "    --test=test.csv --method=lora --model_dir=runs/pairs",
        "tf-adapters train --task=mnli --method=fusion",
    ),
    groups={
        "What": (
            *("method", "encoder", "task", "tasks", "adapters", "quantize"),
            *("init_adapter", "stack_on", "pretrain_steps", "plugin"),
        ),
        "Data": (
            *("data", "text", "label", "head", "validation", "test"),
            *("max_length", "max_train_examples", "data_dir", "task_file"),
            "eval_languages",
        ),
        "Training": (
            *("epochs", "learning_rate", "batch_size", "seed", "precision"),
            *("config_file", "params_override", "distribution_strategy"),
            *("tpu", "backend", "study_processes"),
        ),
        "Output": ("model_dir", "overwrite", "verbose"),
    },
    run=run_train,
    own_flags=(
        Flag("model_dir", "Run folder. Default: runs/<task>_<method>_<seed>."),
    ),
    defaults={
        "method": f"{presets.DEFAULT}; with --data, {text_defaults.METHOD}",
        "epochs": "the method's; with --data, more if that is under 200 steps",
        "learning_rate": "the method's; with --data, one for short runs",
        "text": "text",
        "validation": "a tenth of each class in --data, drawn with the seed",
        "seed": "0",
    },
)
