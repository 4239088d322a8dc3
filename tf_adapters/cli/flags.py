"""Defines and parses the flags of the command `tf-adapters`.

    tf-adapters train --data=reviews.csv --text=review --label=stars
    tf-adapters predict runs/reviews_pfeiffer_0 "a fine film"
    tf-adapters train --help

`python train.py` and `python -m tf_adapters` are the same. Flags that several
subcommands share are defined here once. The file of each subcommand lists the
flags that it takes. Without a subcommand, all shared flags are available, and
`--mode` selects the action.

Settings come from the method's file in official_configs/methods, then
--config_file, then --params_override, then the short flags; later ones win.
`eval`, `predict`, `encode` and `export` read the run's own config.yaml first.
"""

from __future__ import annotations

import os

# TensorFlow's start-up notes would hide the tables that this program prints.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from collections.abc import Sequence
import copy
import functools
import importlib
import itertools
import logging as python_logging
import sys
import types
from typing import TYPE_CHECKING
from typing import Any

from absl import app
from absl import flags
from absl import logging

from tf_adapters.cli import errors as cli_errors
from tf_adapters.cli import garbage
from tf_adapters.cli import help_text
from tf_adapters.cli import quiet
from tf_adapters.cli import shared_flags
from tf_adapters.cli.command import Command
from tf_adapters.cli.command import Flag
from tf_adapters.cli.shared_flags import COMMANDS
from tf_adapters.common.checks import did_you_mean
from tf_adapters.common.keras_backend import BACKENDS
from tf_adapters.config import describe

if TYPE_CHECKING:
    from types import SimpleNamespace


_DEFINE = {
    "string": flags.DEFINE_string,
    "boolean": flags.DEFINE_boolean,
    "integer": flags.DEFINE_integer,
    "float": flags.DEFINE_float,
    "list": flags.DEFINE_list,
    "multi_string": flags.DEFINE_multi_string,
}


def _define_flag(flag: Flag, values: Any = flags.FLAGS) -> None:
    """Defines a `Flag` in absl. `values` is the `FlagValues` to add it to."""
    if flag.kind == "enum":
        flags.DEFINE_enum(
            *(flag.name, flag.default, flag.choices, flag.help),
            flag_values=values,
        )
        return
    limits = {} if flag.least is None else {"lower_bound": flag.least}
    _DEFINE[flag.kind](
        *(flag.name, flag.default, flag.help), flag_values=values, **limits
    )


for _flag in shared_flags.FLAGS:
    _define_flag(_flag)
# Maps each flag that is short for a setting to the setting's name, and to the
# function that defines the flag. The help texts are in `describe`.
_SHORT = {
    "task": ("task", flags.DEFINE_string),
    "task_file": ("data.task_file", flags.DEFINE_string),
    "data": ("data.file", flags.DEFINE_string),
    "text": ("data.text", flags.DEFINE_list),
    "label": ("data.label", flags.DEFINE_string),
    "head": ("data.head", flags.DEFINE_string),
    "validation": ("data.validation_file", flags.DEFINE_string),
    "test": ("data.test_file", flags.DEFINE_string),
    "encoder": ("encoder", flags.DEFINE_string),
    "quantize": ("quantize", flags.DEFINE_string),
    "data_dir": ("data.data_dir", flags.DEFINE_string),
    "init_adapter": ("init_adapter", flags.DEFINE_string),
    "stack_on": ("stack_on", flags.DEFINE_string),
    "eval_languages": ("data.eval_languages", flags.DEFINE_list),
    "learning_rate": ("train.learning_rate", flags.DEFINE_float),
    "epochs": ("train.epochs", flags.DEFINE_integer),
    "batch_size": ("train.batch_size", flags.DEFINE_integer),
    "seed": ("seed", flags.DEFINE_integer),
    "max_train_examples": ("data.max_train_examples", flags.DEFINE_integer),
    "max_length": ("data.max_length", flags.DEFINE_integer),
    "precision": ("train.precision", flags.DEFINE_string),
    "backend": (
        "backend",
        functools.partial(flags.DEFINE_enum, enum_values=BACKENDS),
    ),
    "distribution_strategy": ("distribution_strategy", flags.DEFINE_string),
    "tpu": ("tpu", flags.DEFINE_string),
    "pretrain_steps": ("pretrain.steps", flags.DEFINE_integer),
}
for _name, (_key, _define) in _SHORT.items():
    _meaning = f"{describe.meaning(_key)} Short for --params_override={_key}="
    _define(name=_name, default=None, help=f"{_meaning}...")
# Maps each flag that sets a setting to the setting's name.
SETTINGS = {name: key for name, (key, _) in _SHORT.items()} | {
    "method": "method.name",
    "adapters": "method.adapters",
    "tasks": "method.tasks",
}

_HELP = ("--help", "-help", "-h", "-?")
_FULL = "--helpfull"


def load_command(name: str) -> Any:
    """Returns the `Command` of the subcommand with the given name."""
    return importlib.import_module(f"tf_adapters.cli.{name}").COMMAND


def define(command: Command) -> Any:
    """Returns the flags of a subcommand as `FlagValues`, not yet parsed."""
    values = flags.FlagValues()
    values.set_gnu_getopt()
    for flag in command.own_flags:
        _define_flag(flag, values)
    for name in command.flag_names:
        if name not in values:
            values[name] = copy.deepcopy(flags.FLAGS[name])
            values[name].unparse()
    return values


def parse(
    command: Command, arguments: Sequence[str]
) -> tuple[SimpleNamespace, dict[str, dict[Any, Any]], Any]:
    """Parses the command line of a subcommand.

    Args:
        command: `Command`.
        arguments: List of strings: the command line after the subcommand.

    Returns:
        The options (an object with an attribute for each flag), a nested dict
        of the settings that flags set, and a list of the arguments that are
        not flags.

    Raises:
        SystemExit: After printing help, or with a message about a wrong flag.
    """
    values = define(command)
    before_texts = list(itertools.takewhile("--".__ne__, arguments))
    if any(argument in (*_HELP, _FULL) for argument in before_texts):
        full = _FULL in before_texts
        text = help_text.command_help(command, values, full)
        sys.exit(cli_errors.exit_status(_print, text))
    rest = _parse_or_exit(values, [command.name, *arguments])[1:]
    shared = flags.FLAGS.flags_by_module_dict()[__name__]
    options = {flag.name: flag.default for flag in shared}
    options |= {name: values[name].value for name in values}
    return types.SimpleNamespace(**options), _flag_layer(values), rest


def _parse_or_exit(values: Any, argv: Sequence[str]) -> Any:
    """Parses a command line into the `FlagValues`; exits if a flag is wrong.

    Returns a list. The first item is `argv[0]`, the name of the command. The
    other items are the arguments that are not flags.
    """
    try:
        return values(argv)
    except flags.Error as error:
        command = "" if values is flags.FLAGS else f" {argv[0]}"
        hint = f"See tf-adapters{command} --help."
        names = (argument.partition("=")[0] for argument in argv[1:])
        if any(name.startswith("-") and " " in name for name in names):
            hint = "A text that begins with a dash comes after `--`."
        sys.exit(f"Error: {str(error).rstrip('. ?')}. {hint}")


def _flag_layer(values: Any = flags.FLAGS) -> dict[str, dict[Any, Any]]:
    """Returns a nested dict of the settings that parsed flags set."""
    layer = {"data": {}, "train": {}}
    for name, key in SETTINGS.items():
        value = values[name].value if name in values else None
        if value is not None:
            section, _, field = key.rpartition(".")
            if section:
                layer.setdefault(section, {})[field] = value
            else:
                layer[field] = value
    return layer


def main(argv: Sequence[str]) -> None:
    """Runs a command line without a subcommand; `--mode` selects the action."""
    if len(argv) > 1:
        sys.exit(
            f"Error: Unknown argument `{argv[1]}`. Flags are --name=value, or "
            "--name alone."
        )
    _start(flags.FLAGS)
    # Imported here, so that --help and messages about wrong flags are fast.
    from tf_adapters.cli import main as cli_main

    sys.exit(cli_main.run_command(_flag_layer(), flags.FLAGS))


def _start(options: Any) -> None:
    logging.set_verbosity(logging.WARNING)
    # absl's prefix (time, process, source line) is of no use to users.
    logging.get_absl_handler().setFormatter(
        python_logging.Formatter("%(levelname)s: %(message)s")
    )
    streams: tuple[Any, ...] = (sys.stdout, sys.stderr)
    for stream in streams:
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if not options.verbose:
        quiet.install()


def run() -> None:
    """Runs `tf-adapters` with the command-line arguments of this process."""
    garbage.collect_less()
    arguments = sys.argv[1:]
    name = arguments[0] if arguments else ""
    if name in ("analyse", "analyze"):
        from tf_adapters.cli import analyse

        quiet.install()
        sys.exit(analyse.run_analysis(arguments[1:]))
    if name in COMMANDS:
        app.run(_run_subcommand, flags_parser=_parse_subcommand)
    if not arguments or any(argument in _HELP for argument in arguments):
        commands = [load_command(name) for name in COMMANDS]
        text = help_text.overview(commands, shared_flags.GROUPS, flags.FLAGS)
        sys.exit(cli_errors.exit_status(_print, text) or not arguments)
    if not name.startswith("-"):
        sys.exit(
            f"Error: Unknown command `{name}`.{did_you_mean(name, COMMANDS)} "
            f"Known: {', '.join(COMMANDS)}."
        )
    # absl's --helpfull shows the docstring and the flags of the main module, so
    # make these the same as the ones of this module.
    sys.modules["__main__"].__doc__ = __doc__
    for flag in flags.FLAGS.get_flags_for_module(__name__):
        flags.FLAGS.register_key_flag_for_module(sys.argv[0], flag)
    app.run(main, flags_parser=lambda argv: _parse_or_exit(flags.FLAGS, argv))


def _print(text: str) -> None:
    print(text, flush=True)


def _parse_subcommand(argv: Sequence[str]) -> tuple[Any, ...]:
    flags.FLAGS(argv[:1])  # Parse, so that absl's own flags have values.
    command = load_command(argv[1])
    return command, *parse(command, argv[2:])


def _run_subcommand(parsed: Any) -> None:
    command, options, layer, arguments = parsed
    _start(options)
    sys.exit(cli_errors.exit_status(command.run, options, layer, arguments))
