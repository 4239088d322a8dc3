"""The errors of this library, and helpers for their messages."""

from collections.abc import Sequence
import re

_MAX_SHOWN = 200


class UserError(ValueError):
    """An error that the user can fix, with a message of one or two sentences.

    The command line prints only the message. Any other error is a bug in this
    library or in one that it uses, and is printed with its traceback.

    Examples:
        >>> try:
        ...     tf_adapters.adapt("minilm", methods.Houlsby())
        ... except tf_adapters.UserError as error:
        ...     print("load_encoder" in str(error))
        True
    """

    # If an error is raised in a traced function, AutoGraph creates a new error.
    # The new error has the same class only if its constructor is exactly this.
    __init__ = Exception.__init__


class ConfigError(UserError):
    """A mistake in a configuration.

    Examples:
        >>> try:
        ...     tf_adapters.train("reviews.csv", method="houlsbi")
        ... except tf_adapters.ConfigError as error:
        ...     print("Did you mean `houlsby`?" in str(error))
        True
    """


class DataError(UserError):
    r"""A dataset that is missing, unreachable or malformed.

    Examples:
        >>> with open("reviews.csv", "w") as file:
        ...     _ = file.write("review,label\na fine film,yes\n")
        >>> try:
        ...     tf_adapters.train("reviews.csv")
        ... except tf_adapters.DataError as error:
        ...     print("review" in str(error))
        True
    """


class AdapterError(UserError):
    """An adapter folder that cannot be used.

    Examples:
        >>> try:
        ...     tf_adapters.load_adapter("no_such_folder", encoder)
        ... except tf_adapters.AdapterError as error:
        ...     print("no_such_folder" in str(error))
        True
    """


class NonFiniteError(RuntimeError):
    """Raised if a loss or a gradient becomes NaN or infinite."""


class Stopped(RuntimeError):  # noqa: N818
    """Raised if a run was asked to stop. The same command resumes it.

    Attributes:
        exit_status: Exit status for the program, `EX_TEMPFAIL` of sysexits.h
            ("try again later").
    """

    exit_status = 75


def shown(value: object) -> str:
    """Returns the `repr` of a value on one line, shortened, for a message."""
    try:
        # The `repr` of arrays and tensors can have several lines.
        return cut(re.sub(r"\s*\n\s*", " ", repr(value)))
    # Values from files can be nested more deeply than `repr` supports.
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deeply"


def cut(text: object) -> str:
    """Shortens a value's text to at most 200 characters, for a message.

    Args:
        text: A string, or another value that is converted with `str`, such as
            a path or an error.
    """
    text = str(text)
    if len(text) <= _MAX_SHOWN:
        return text
    return f"{text[: _MAX_SHOWN - 3]}..."


def some(names: Sequence[str]) -> str:
    """Joins names for a message, such as `"a, b, c, d, e and 3 more"`.

    At most five names are listed. Returns `"none"` if there are no names.
    """
    rest = f" and {len(names) - 5} more" if len(names) > 5 else ""
    # Names in a damaged file can have any length.
    return ", ".join(name[:120] for name in names[:5]) + rest or "none"
