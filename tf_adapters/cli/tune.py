"""`tf-adapters tune`: searches for the best settings of a run."""

from __future__ import annotations

from collections.abc import Sequence
import shlex
from typing import Any

from tf_adapters.cli import option_checks
from tf_adapters.cli.command import Command
from tf_adapters.cli.command import Flag
from tf_adapters.cli.command import check_no_arguments
from tf_adapters.common import dataclass_config
from tf_adapters.config import plugins

_CHOSEN = ("method", "learning_rate")


def run_tune(
    options: Any, layer: dict[str, Any], arguments: Sequence[str]
) -> None:
    """Searches for the best settings of a run, and prints them.

    See `Command.run` for the arguments.

    Raises:
        ConfigError: If the flags do not say what to train on, or the search
            fails; see `tuning.search_settings`.
    """
    check_no_arguments("tune", arguments)
    named = "task" in layer or layer["data"]
    option_checks.check_data_named(
        named or options.config_file or options.params_override
    )
    from tf_adapters.cli import main

    main.use_backend(layer, options)
    layers = main.layers_of_command(layer, options)
    has_table = any((one.get("data") or {}).get("file") for one in layers)
    option_checks.check_table_flags(layer, has_table)
    plugins.load_plugins(options.plugin)
    from tf_adapters.launch import trial_settings
    from tf_adapters.launch import tuning

    best = tuning.search_settings(
        layers,
        options.model_dir,
        options.trials,
        options.methods,
        options.overwrite,
    )
    failed = f", of which {best.failed} failed" * bool(best.failed)
    print(
        f"best of {best.trials} trials{failed}: {best.metric} {best.value:.4f} "
        f"on validation\nsettings: {trial_settings.words(best.layer)}\n"
        f"run: {best.folder}\n"
        f"command: {command_of(options, layer, best)}"
    )


def command_of(options: Any, layer: dict[str, Any], best: Any) -> str:
    """Returns the command line that trains with the best trial's settings.

    If `tune` was given a test file, the command line has it too.

    Args:
        options: Options of `tune`.
        layer: Nested dict of the settings that the flags of `tune` set.
        best: `tuning.Best`.
    """
    from tf_adapters.cli import flags

    given = dataclass_config.flatten(layer)
    parts = [
        f"--{name}={_text(given[key])}"
        for name, key in flags.SETTINGS.items()
        if key in given and name not in _CHOSEN
    ]
    parts += [f"--config_file={options.config_file}"] * bool(
        options.config_file
    )
    chosen = dict(best.layer["method"])
    parts.append(f"--method={chosen.pop('name')}")
    rate = best.layer.get("train", given_rate(given))
    if rate:
        parts.append(f"--learning_rate={rate['learning_rate']!r}")
    overrides = [f"method.{name}={value}" for name, value in chosen.items()]
    for override in (*options.params_override, *overrides):
        parts.append(f"--params_override={override}")
    parts += [f"--plugin={plugin}" for plugin in options.plugin]
    parts.append(f"--model_dir={best.folder.parents[1] / 'best'}")
    return " ".join(map(shlex.quote, ["tf-adapters", "train", *parts]))


def given_rate(given: Any) -> dict[str, Any] | None:
    """Returns a dict with the learning rate that a flag sets, or `None`.

    `given` is a dict from the dotted names of settings to values.
    """
    rate = given.get("train.learning_rate")
    return None if rate is None else {"learning_rate": rate}


def _text(value: Any) -> str:
    return ",".join(value) if isinstance(value, list | tuple) else str(value)


COMMAND = Command(
    name="tune",
    summary="Searches for learning rate, adapter size and method with Optuna "
    "(pip install 'tf_adapters[search]'). Each trial trains a run. The "
    "one with the best validation metric wins; test data is never used. "
    "The same command resumes a stopped search, and with more --trials "
    "extends it.",
    usage="--data=FILE --text=COLUMN --label=COLUMN",
    examples=(
        "tf-adapters tune --data=reviews.csv --text=review --label=stars",
        "tf-adapters tune --data=reviews.csv --text=review --label=stars \\",
        "    --trials=40 --methods=pfeiffer,lora,bitfit --epochs=3",
        "tf-adapters tune --task=rte --data_dir=data --method=lora",
    ),
    groups={
        "What": (
            *("trials", "methods", "method", "encoder", "task", "plugin"),
            "quantize",
        ),
        "Data": (
            *("data", "text", "label", "head", "validation", "test"),
            *("max_length", "max_train_examples", "data_dir", "task_file"),
        ),
        "Training": (
            *("epochs", "learning_rate", "batch_size", "seed", "precision"),
            *("config_file", "params_override", "distribution_strategy"),
        ),
        "Output": ("model_dir", "overwrite", "verbose"),
    },
    run=run_tune,
    own_flags=(
        Flag("trials", "How many settings to try.", 20, "integer", 1),
        Flag(
            "methods",
            "Methods to search among, separated by commas. Default: --method "
            "if it is given, else pfeiffer,houlsby,lora.",
            kind="list",
        ),
        Flag("method", "The only method, whose settings are searched."),
        Flag(
            "model_dir",
            "Folder of the search. Default: runs/<task>_tune_<seed>.",
        ),
        Flag("overwrite", "Remove an earlier search first.", False, "boolean"),
        Flag("test", "Not used by the search; the printed command has it."),
    ),
    defaults={
        "learning_rate": "searched, unless it is given",
        "epochs": "the method's; with --data, more if that is under 200 steps",
        "text": "text",
        "validation": "a tenth of each class in --data, drawn with the seed",
        "seed": "0",
    },
)
