"""The errors that people can mend, by what they are about."""

import re

_MAX_SHOWN = 200


class UserError(ValueError):
    """What a user can mend, said in one sentence or two.

    The command prints it alone. Every other error is a fault of this library,
    or of one below it, and keeps its traceback.

    Examples:
        >>> try:
        ...     tf_adapters.adapt("minilm")
        ... except tf_adapters.UserError as error:
        ...     print("load_encoder" in str(error))
        True
    """

    # Autograph makes an error that is raised in a graph's Python anew, and so
    # keeps its class only where the constructor is plainly this one.
    __init__ = Exception.__init__


class ConfigError(UserError):
    """A mistake in a configuration, said in one sentence."""


class DataError(UserError):
    """A data set that is missing, unreachable or malformed."""


class AdapterError(UserError):
    """An adapter folder that cannot be used, and why."""


class NonFiniteError(RuntimeError):
    """A loss or a gradient became NaN or infinite."""


class Stopped(RuntimeError):
    """The run was told to stop; the same command goes on with it.

    Attributes:
        exit_status: What a program should end with: that of sysexits.h for
            "try again".
    """

    exit_status = 75


def shown(value):
    """Returns the `repr` of a received value in one line, cut if long."""
    try:
        # Arrays and tensors have several lines.
        return cut(re.sub(r"\s*\n\s*", " ", repr(value)))
    # The libraries' readers allow more depth than is left here.
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deeply"


def cut(text):
    """Returns received text for a message: its first 200 characters at most.

    Args:
        text: A string, or a value whose `str` is shown: a path, an error.
    """
    text = str(text)
    if len(text) <= _MAX_SHOWN:
        return text
    return f"{text[: _MAX_SHOWN - 3]}..."
