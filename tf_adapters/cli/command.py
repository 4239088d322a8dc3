"""Describes subcommands: the help texts, flags and function of each."""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import types
import typing
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut

if TYPE_CHECKING:
    from types import SimpleNamespace


@dataclasses.dataclass(frozen=True)
class Flag:
    """A command-line flag that has its own help text.

    The help text of a flag that is short for a setting comes from the setting
    instead, see `flags`.

    Attributes:
        name: Name without dashes.
        help: A sentence for `--help`.
        default: Default value.
        kind: Type of the value.
        least: Minimum of a number, or `None` (default).
        choices: Values that a flag of the kind `"enum"` may have.
    """

    name: str
    help: str
    default: typing.Any = None
    kind: typing.Literal[
        "string",
        "boolean",
        "integer",
        "float",
        "list",
        "multi_string",
        "enum",
    ] = "string"
    least: float | None = None
    choices: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Command:
    """A subcommand of `tf-adapters`.

    Attributes:
        name: Name on the command line.
        summary: A sentence that says what the subcommand does.
        usage: The arguments after its name, as `--help` shows them.
        examples: Complete command lines, to show as examples.
        groups: Dict from the title of each group of flags to the names of the
            flags. Common flags are first.
        run: Function that runs the subcommand and returns an exit status or
            `None`. It takes the options (an object with an attribute for each
            flag), the layer (a nested dict of the settings that flags set),
            and a list of the command's arguments that are not flags.
        own_flags: Flags that only this subcommand has, or that have another
            meaning in it.
        defaults: Dict from the name of a flag to a description of its default,
            for flags whose default is not a fixed value.
        common: Flags that are rarely used elsewhere, but that the help of this
            subcommand describes.
    """

    name: str
    summary: str
    usage: str
    examples: tuple[str, ...]
    groups: dict[str, tuple[str, ...]]
    run: Callable[[typing.Any, dict[str, Any], list[Any]], int | None]
    own_flags: tuple[Flag, ...] = ()
    defaults: dict[str, str] = dataclasses.field(default_factory=dict)
    common: tuple[str, ...] = ()

    @property
    def flag_names(self) -> list[Any]:
        """List of the names of all flags."""
        return [name for names in self.groups.values() for name in names]


def said(arguments: Sequence[str]) -> str:
    """Joins the arguments of a subcommand, to show them in an error message."""
    return cut(" ".join(arguments)) or "none"


def with_options(options: Any, **changes: Any) -> "SimpleNamespace":
    """Returns a copy of a command's options in which `changes` are set."""
    return types.SimpleNamespace(**{**vars(options), **changes})


def on_run(
    name: str, options: Any, arguments: Sequence[Any]
) -> "SimpleNamespace":
    """Sets the option `model_dir` to the run folder that a subcommand is given.

    Returns a changed copy of the options.

    Args:
        name: Name of the subcommand. It becomes the option `mode`.
        options: Options of the subcommand. They may already have the folder as
            `model_dir`.
        arguments: List of arguments that are not flags. If `model_dir` is not
            set, this list has the folder.

    Raises:
        ConfigError: If there is not exactly one folder.
    """
    given = [*filter(None, [options.model_dir]), *arguments]
    if len(given) != 1:
        raise ConfigError(
            f"`tf-adapters {name}` takes the folder of one run, as in "
            f"tf-adapters {name} runs/x. Received: {said(given)}"
        )
    return with_options(options, mode=name, model_dir=given[0])


def check_no_arguments(
    name: str, arguments: Sequence[str], hint: str = ""
) -> None:
    """Raises a `ConfigError` if a subcommand is given arguments besides flags.

    Args:
        name: Name of the subcommand.
        arguments: List of the arguments that are not flags.
        hint: Sentence to add to the message. Default: none.
    """
    if arguments:
        raise ConfigError(
            f"`tf-adapters {name}` takes flags only, --name=value.{hint} "
            f"Received: {said(arguments)}"
        )
