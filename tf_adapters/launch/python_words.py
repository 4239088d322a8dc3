"""Messages of the command, as someone who calls a function reads them."""

import contextlib
import re

from tf_adapters.common.errors import UserError

# From flags to arguments; other flags have the argument's name.
_ARGUMENTS = {
    "model_dir": "output_dir",
    "params_override": "settings",
    "overwrite": "overwrite=True",
}
# A flag, and the value after it if that is a word.
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z_]+)(=([a-z]+\b(?![/.\w]))?)?")


def in_python(message):
    """Returns a message in which `--name=value` is written as an argument.

    Args:
        message: Text that names flags of the command.
    """
    return _FLAG.sub(_argument, message)


def _argument(match):
    name, equals, value = match.groups()
    name = _ARGUMENTS.get(name, name)
    return f'{name}="{value}"' if value else f"{name}{equals or ''}"


@contextlib.contextmanager
def errors_in_python(files=()):
    """Raises the errors of its block with arguments in place of flags.

    Args:
        files: Pairs of the path of a file that the user has never seen, and
            of the argument whose rows are in it.
    """
    try:
        yield
    except UserError as error:
        message = in_python(str(error))
        for path, argument in files:
            message = message.replace(str(path), f"`{argument}`")
        raise type(error)(message) from error


def say_in_python(message):
    """Prints a message of the command, see `in_python`."""
    print(in_python(message), flush=True)
