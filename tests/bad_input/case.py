"""The lines of the table."""

import collections
import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Case:
    """One kind of bad input, and its expected outcome.

    Attributes:
        given: Description of the input.
        outcome: `"error"` (the command ends with status 1), `"warning"` (it
            logs a warning and continues) or `"result"` (the input has no
            effect).
        then: Part of the command's message; for a result, what is checked.
        do: Function that takes a `space.Space` and returns an `Outcome`.
    """

    given: str
    outcome: str
    then: str
    do: collections.abc.Callable[[Any], Any]


def error(given, then, do):
    """Returns a case in which the command must end with an error message."""
    return Case(given, "error", then, do)


def warning(given, then, do):
    """Returns a case in which the command must log a warning and continue."""
    return Case(given, "warning", then, do)


def result(given, then, do):
    """Returns a case in which the input must have no effect."""
    return Case(given, "result", then, do)
