"""The description of a subcommand: its help texts, its flags, its function."""

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
    """A flag that does not set a setting.

    Attributes:
        name: Name without dashes.
        help: A sentence for `--help`.
        default: Default value.
        kind: Type of the value.
        least: Minimum of a number, or `None` (default).
        choices: Values of an enum.
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
        examples: Complete command lines.
        groups: Dict from a title to names of flags, common flags first.
        run: Function that runs the subcommand and returns an exit status or
            `None`. Its arguments are the options (an object with an attribute
            for each flag), a nested dict of the settings in flags, and a list
            of the arguments that are not flags.
        own_flags: Flags that only this subcommand has, or that have another
            meaning in it.
        defaults: Dict from a flag to a description of its default, if the
            default is not a fixed value.
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
    """Returns the arguments of a subcommand as text for a message."""
    return cut(" ".join(arguments)) or "none"


def with_options(options: Any, **changes: Any) -> "SimpleNamespace":
    """Returns a copy of options with changed values."""
    return types.SimpleNamespace(**{**vars(options), **changes})


def on_run(
    name: str, options: Any, arguments: Sequence[Any]
) -> "SimpleNamespace":
    """Returns a subcommand's options, with its run folder as `model_dir`.

    Args:
        name: Name of the subcommand, which becomes `mode`.
        options: Options of the subcommand. They may have the folder as
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
    """Raises a `ConfigError` if there is an argument that is not a flag."""
    if arguments:
        raise ConfigError(
            f"`tf-adapters {name}` takes flags only, --name=value.{hint} "
            f"Received: {said(arguments)}"
        )
