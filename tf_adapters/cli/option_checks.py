"""Checks that a command's options have an effect, and that its input exists."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown

# Maps a tuple of flags to the options that have an effect only with one of
# them, in a dict from the name of each option to its default.
_NEEDED = {
    ("--study",): {
        "report": False,
        "small": False,
        "two_cores": False,
        "one_gpu": False,
        "results_file": None,
        "executor": "local",
    },
    ("--executor=ray",): {"ray_address": None, "ray_cpus": 1, "ray_gpus": 0.0},
    ("--mode=predict", "--mode=encode"): {"input": None, "output": None},
    ("--mode=predict",): {"glue_submission": None},
    ("--mode=encode",): {"column": None},
    ("--mode=export",): {"format": "saved_model", "with_head": True},
}


# Maps flags that describe the table of `--data` to keys of `data`.
_OF_TABLE = {
    "text": "text",
    "label": "label",
    "head": "head",
    "validation": "validation_file",
    "test": "test_file",
}


def check_options(options: Any) -> None:
    """Raises a `ConfigError` if an option would have no effect.

    Args:
        options: See `main.run_command`.
    """
    there = {f"--mode={options.mode}", f"--executor={options.executor}"}
    if options.study:
        there = {"--study", f"--executor={options.executor}"}
    for needed, defaults in _NEEDED.items():
        for name, default in defaults.items():
            if getattr(options, name) != default and not there & {*needed}:
                raise ConfigError(
                    f"--{name} has an effect only with {' or '.join(needed)}: "
                    f"add it, or leave --{name} out."
                )

    is_foreign = options.format in ("adapterhub", "peft")
    if not options.with_head and not is_foreign:
        raise ConfigError(
            "--with_head=false has an effect only with --format=adapterhub or "
            "--format=peft: add one, or leave --with_head out."
        )


def check_table_flags(layer: dict[str, Any], has_table: bool) -> None:
    """Raises a `ConfigError` for a flag about a table if there is no table.

    Args:
        layer: Nested dict of the settings that flags set.
        has_table: Whether the command or its run names a table, `data.file`.
    """
    given = [f"--{n}" for n, key in _OF_TABLE.items() if key in layer["data"]]
    if given and not has_table:
        raise ConfigError(
            f"{', '.join(given)} has an effect only with a table, --data: a "
            "task names its own columns and files. Add --data, or leave "
            f"{', '.join(given)} out."
        )


def check_data_named(named: Any) -> None:
    """Raises a `ConfigError` if a command does not say what to train on.

    Args:
        named: What the command says about its task or data. False if nothing.
    """
    if not named:
        raise ConfigError(
            "Say what to train on: --data=<table> with --text=<column> and "
            "--label=<column>, or --task=<name>."
        )


def check_input(options: Any) -> None:
    """Raises an error if a command that reads texts has no valid input.

    `--mode=predict` and `--mode=encode` need an input. `--mode=encode` also
    needs an output.

    Args:
        options: See `main.run_command`.

    Raises:
        ConfigError: If an option is missing, two options conflict, or the
            output is a folder or the input.
        DataError: If the input file does not exist. Checking this here saves
            the seconds that it takes to import libraries that read the file.
    """
    if options.mode == "encode":
        _check_encode(options)
    if options.mode == "predict":
        _check_predict(options)
    if options.input and options.input != "-":
        path = Path(options.input)
        if not path.exists():
            raise DataError(
                f"Cannot read {cut(path)}: {os.strerror(errno.ENOENT)}."
            )
    if options.output:
        _check_output(options.input, options.output)


def _check_output(given: str | None, output: str) -> None:
    if os.path.isdir(output):
        raise ConfigError(
            f"--output={cut(output)} is a folder. Give the name of a file."
        )
    if os.path.exists(output) and not os.path.isfile(output):
        raise ConfigError(
            f"--output={cut(output)} is a device or a pipe, which a file would "
            "replace. Give the name of a file; `tf-adapters predict` prints "
            "the answers without --output."
        )
    _check_writable(output)
    if not given or not os.path.isfile(output) or given == "-":
        return
    if os.path.samefile(given, output):
        raise ConfigError(
            f"--input and --output are the same file, {cut(output)}, whose "
            "rows would be replaced. Give --output another name."
        )


def _check_writable(output: str) -> None:
    """Raises a `ConfigError` if no file can be written at the path `output`.

    Otherwise, the user would learn it only after all rows are predicted.
    """
    folder = Path(output).absolute().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(
            f"--output={cut(output)}: no file can be written in {cut(folder)}. "
            "Give a path that you may write to."
        )


def _check_predict(options: Any) -> None:
    if options.glue_submission and options.input:
        raise ConfigError(
            "--glue_submission predicts the task's own test set: leave --input "
            "out, or give --output in its place."
        )
    if not options.glue_submission and not options.input:
        raise ConfigError(
            "--mode=predict needs --input: a JSONL, CSV or TSV file with the "
            "task's text fields, a .txt file with one text per line, words as "
            ".conllu or .conll, questions as SQuAD's .json, or - for standard "
            'input. `tf-adapters predict <run> "a text"` answers one text.'
        )


def _check_encode(options: Any) -> None:
    if not options.input:
        raise ConfigError(
            "--mode=encode needs --input: a .txt file with one text per line, "
            "a JSONL, CSV or TSV file, or - for standard input."
        )
    if not str(options.output or "").endswith(".npy"):
        raise ConfigError(
            "--mode=encode needs --output: a file whose name ends in .npy. "
            f"Received: {shown(options.output)}"
        )


def check_keeps_file(config_file: str | None, model_dir: Path | None) -> None:
    """Raises a `ConfigError` if a run would replace the user's own file.

    A run stores all of its settings in `config.yaml`, without comments.

    Args:
        config_file: Path of the file that the command names, or `None`.
        model_dir: Path of the run folder, or `None`.
    """
    if not config_file or not model_dir:
        return
    is_there = Path(config_file).expanduser().resolve() in (
        model_dir.resolve() / "config.yaml",
        model_dir.resolve() / "declared.yaml",
    )
    if not is_there:
        return
    # Imported here, because it imports Keras, which takes seconds.
    from tf_adapters.runs import left_files

    if not left_files.was_started(model_dir):
        raise ConfigError(
            f"--config_file={cut(config_file)} is where a run in --model_dir="
            f"{cut(model_dir)} stores its settings, and would be replaced. "
            "Give the file another name, such as settings.yaml."
        )
