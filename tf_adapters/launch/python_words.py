"""Rewrites messages that name flags, for users who call Python functions."""

from collections.abc import Iterator
import contextlib
import re
from typing import Any

from tf_adapters.common.errors import UserError

# From flags to arguments. Other flags have the same names as the arguments.
_ARGUMENTS = {
    "params_override": "settings",
    "overwrite": "overwrite=True",
}
# A flag, followed by its value if the value is a word.
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z_]+)(=([a-z]+\b(?![/.\w]))?)?")


def in_python(message: str) -> str:
    """Returns a message with its flags rewritten as arguments in Python.

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
    """Rewrites the messages of errors in its block with `in_python`.

    Args:
        files: Pairs of a temporary file and the argument whose rows it holds.
            Messages name the argument, because users do not know the file.

    Raises:
        UserError: The error of the block, with the new message.
    """
    try:
        yield
    except UserError as error:
        message = in_python(str(error))
        for path, argument in files:
            message = message.replace(str(path), f"`{argument}`")
        raise type(error)(message) from error


def say_in_python(message: str) -> None:
    """Prints a message of the command, rewritten with `in_python`."""
    print(in_python(message), flush=True)
