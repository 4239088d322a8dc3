"""What a subcommand is: its words for people, its flags, and what it does."""

from collections.abc import Callable
import dataclasses
import types
import typing

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut


@dataclasses.dataclass(frozen=True)
class Flag:
    """A flag that is not short for a setting.

    Attributes:
        name: Name without dashes.
        help: What it means, a sentence.
        default: Its default.
        kind: What its value is.
        least: Least value of a number, or `None`.
        choices: The values that an enum has.
    """

    name: str
    help: str
    default: typing.Any = None
    kind: typing.Literal[
        *("string", "boolean", "integer", "float", "list", "multi_string"),
        "enum",
    ] = "string"
    least: float | None = None
    choices: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Command:
    """A subcommand of `tf-adapters`.

    Attributes:
        name: What it is called by.
        summary: What it does, a sentence.
        usage: What follows its name, flags left out.
        examples: Whole lines as they are typed.
        groups: Dict from a title to names of flags, the common ones first.
        run: Function of the options, an object with a value for each flag; of
            the nested dict of the settings that flags give; and of the list of
            arguments that are no flags. Returns an exit status, or `None`.
        own_flags: Flags that only this subcommand has, or that mean something
            else in it.
        defaults: From a flag to words for its default, where that depends.
        common: Flags that this subcommand's help describes, though other
            subcommands' do not.
    """

    name: str
    summary: str
    usage: str
    examples: tuple[str, ...]
    groups: dict[str, tuple[str, ...]]
    run: Callable[[typing.Any, dict, list], int | None]
    own_flags: tuple[Flag, ...] = ()
    defaults: dict[str, str] = dataclasses.field(default_factory=dict)
    common: tuple[str, ...] = ()

    @property
    def flag_names(self):
        """Names of all its flags."""
        return [name for names in self.groups.values() for name in names]


def said(arguments):
    """Returns the arguments of a subcommand for a message."""
    return cut(" ".join(arguments)) or "none"


def with_options(options, **changes):
    """Returns a copy of options with other values."""
    return types.SimpleNamespace(**{**vars(options), **changes})


def on_run(name, options, arguments):
    """Returns options for the run folder that a subcommand is given.

    Raises:
        ConfigError: If there is none, or more than that.
    """
    given = [*filter(None, [options.model_dir]), *arguments]
    if len(given) != 1:
        raise ConfigError(
            f"`tf-adapters {name}` takes the folder of one run, as in "
            f"tf-adapters {name} runs/x. Received: {said(given)}"
        )
    return with_options(options, mode=name, model_dir=given[0])


def check_no_arguments(name, arguments, hint=""):
    """Raises a `ConfigError` if there is an argument that is not a flag."""
    if arguments:
        raise ConfigError(
            f"`tf-adapters {name}` takes flags only, --name=value.{hint} "
            f"Received: {said(arguments)}"
        )
