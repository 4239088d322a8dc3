"""What a line of the table is."""

import collections
import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Case:
    """One kind of bad input, and what has to become of it.

    Attributes:
        given: What is broken, for people.
        outcome: `"error"` (the command ends with status 1), `"warning"` (it
            goes on and says so) or `"result"` (the right one).
        then: A part of what the command says; of a result, what is checked.
        do: Function of a `space.Space` that returns an `Outcome`.
    """

    given: str
    outcome: str
    then: str
    do: collections.abc.Callable[[Any], Any]


def error(given, then, do):
    """Returns the case of a command that has to end with a sentence."""
    return Case(given, "error", then, do)


def warning(given, then, do):
    """Returns the case of a command that has to go on and say so."""
    return Case(given, "warning", then, do)


def result(given, then, do):
    """Returns the case of a command that has to do what it would anyway."""
    return Case(given, "result", then, do)
