"""Rewrites messages that name flags, for users who call Python functions."""

from collections.abc import Iterator
import contextlib
import re
from typing import Any

from tf_adapters.common.errors import UserError

# Maps flags to Python arguments. Other flags have the arguments' names.
_ARGUMENTS = {
    "params_override": "settings",
    "overwrite": "overwrite=True",
}
# Matches a flag, with its value if the value is a single word.
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z_]+)(=([a-z]+\b(?![/.\w]))?)?")


def in_python(message: str) -> str:
    """Rewrites the flags in a message as Python arguments; returns the message.

    Args:
        message: Text that may name flags of the command.
    """
    return _FLAG.sub(_argument, message)


def _argument(match: Any) -> str:
    name, equals, value = match.groups()
    name = _ARGUMENTS.get(name, name)
    return f'{name}="{value}"' if value else f"{name}{equals or ''}"


@contextlib.contextmanager
def errors_in_python(files: Any = ()) -> Iterator[None]:
    """Context manager that turns flags in error messages into Python arguments.

    Args:
        files: Pairs of the path of a temporary file and the name of the
            argument whose table the file holds. In messages, paths are
            replaced with names, because users do not know the files.

    Raises:
        UserError: The error that the block raised, with the new message.
    """
    try:
        yield
    except UserError as error:
        message = in_python(str(error))
        for path, argument in files:
            message = message.replace(str(path), f"`{argument}`")
        raise type(error)(message) from error


def say_in_python(message: str) -> None:
    """Prints a message, after turning flags in it into Python arguments."""
    print(in_python(message), flush=True)
