"""Makes the texts of `--help`: groups of flags, with common flags first."""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import re
import textwrap
from typing import Any

from tf_adapters.cli.command import Command
from tf_adapters.cli.command import Flag
from tf_adapters.config import describe

_WIDTH = 80
_COLUMN = 26
# Rarely used flags. Without --helpfull, only their names are listed.
_RARE = (
    *("tasks", "adapters", "init_adapter", "stack_on", "pretrain_steps"),
    *("plugin", "max_train_examples", "task_file", "eval_languages"),
    *("config_file", "precision", "quantize", "distribution_strategy", "tpu"),
    "backend",
    *("study_processes", "glue_submission", "with_head", "format", "report"),
    *("small", "two_cores", "one_gpu", "results_file", "executor"),
    *("ray_address", "ray_cpus", "ray_gpus"),
)


def command_help(command: Command, values: Any, full: bool = False) -> str:
    """Returns the help of one subcommand.

    Args:
        command: `Command`.
        values: Mapping from the name of each of its flags to the absl flag.
        full: Whether to describe rarely used flags too. Default: `False`.
    """
    rare = () if full else set(_RARE) - set(command.common)
    lines = [
        *textwrap.wrap(command.summary, _WIDTH),
        "",
        f"Usage: tf-adapters {command.name} {command.usage}".rstrip(),
        "",
        "Examples:",
        *(f"  {line}" for line in command.examples),
        *_groups(command.groups, values, command.defaults, rare),
    ]
    if set(rare) & set(command.flag_names):
        lines += ["", f"All of them: tf-adapters {command.name} --helpfull"]
    return "\n".join(lines)


def overview(
    commands: Sequence[Any], groups: dict[str, Any], values: Any
) -> str:
    """Returns the help of `tf-adapters` without a subcommand.

    Args:
        commands: List of `Command`.
        groups: Dict from the title of each group of flags to the names of the
            flags.
        values: Mapping from the name of each flag to the absl flag.
    """
    lines = [
        "Adapters for BERT-family encoders.",
        "",
        "Usage: tf-adapters COMMAND ...   (or python train.py COMMAND ...)",
        "",
        "Commands, each with a --help of its own:",
    ]
    for command in commands:
        lines += _entry(
            command.name, re.split(r"(?<=\.) ", command.summary)[0], 12
        )
    lines += [
        "",
        "Examples:",
        "  tf-adapters train --data=reviews.csv --text=review --label=stars",
        '  tf-adapters predict runs/reviews_pfeiffer_0 "a fine film"',
        "  tf-adapters train --task=mnli --method=fusion",
        "",
        "Without a command, --mode says what to do, and these are the flags:",
        *_groups(groups, values, {}, _RARE),
        "",
        "All of them: --helpfull. Settings: docs/settings.md. Methods, tasks,",
        "encoders and studies: --list=methods|tasks|encoders|studies.",
    ]
    return "\n".join(lines)


def _groups(
    groups: Any, values: Any, defaults: Any, rare: Any
) -> Iterator[Any]:
    of_settings = {name: default for name, default, _ in describe.settings()}
    for title, names in groups.items():
        yield ""
        yield f"{title}:"
        for name in names:
            if name not in rare:
                yield from _flag(values[name], defaults.get(name), of_settings)
        more = ", ".join(f"--{name}" for name in names if name in rare)
        if more:
            yield from _entry("and", more, 6)


def _flag(flag: Flag, words: Any, of_settings: Any) -> Iterator[Any]:
    meaning, _, setting = flag.help.partition(" Short for --params_override=")
    # absl appends that a flag may be repeated, which our text already says.
    meaning = meaning.partition(";\n")[0]
    meaning = re.sub(r"[,;] (or )?`None`[^.;]*", "", meaning)
    default = words or _shown(flag.default)
    if not default and setting:
        default = _shown(of_settings[setting.removesuffix("=...")])
    says_so = "efault" in meaning
    if default and not says_so:
        meaning = f"{meaning} Default: {default}."
    yield from _entry(f"--{flag.name}", meaning, _COLUMN)


def _shown(default: Any) -> str:
    if default in (None, "", [], (), False, dataclasses.MISSING):
        return ""
    if isinstance(default, list | tuple):
        return ",".join(map(str, default))
    return str(default)


def _entry(name: str, text: str, column: Any) -> list[Any]:
    """Formats a name and its meaning as lines in two columns.

    `column` is the index of the character at which the second column begins.
    """
    lines = textwrap.wrap(text, _WIDTH - column, break_on_hyphens=False)
    first, *rest = lines or [""]
    return [
        f"  {name}".ljust(column - 1) + f" {first}",
        *(" " * column + line for line in rest),
    ]
