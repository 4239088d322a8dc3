"""What happened to each input of a reader, in a file that outlives a stop."""

import dataclasses
import os

READ, REFUSED, FAULT = b"+", b"-", b"!"
_UNDER_WAY = b"?"


@dataclasses.dataclass(frozen=True)
class Count:
    """How many inputs of a reader were refused, read, or faults."""

    inputs: int = 0
    refused: int = 0
    read: int = 0
    faults: int = 0

    def __add__(self, other):
        return Count(
            self.inputs + other.inputs,
            self.refused + other.refused,
            self.read + other.read,
            self.faults + other.faults,
        )


class Outcomes:
    """A file with a character for each input, in the order of their numbers.

    Processes may share it after a fork: each write has its own place.

    Args:
        path: Path of the file, which is made if it does not exist.
    """

    def __init__(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def left(self, inputs):
        """Returns the numbers of inputs to read: earlier faults, then new ones.

        Args:
            inputs: How many inputs there are.
        """
        content = self._content()
        again = [
            i for i, one in enumerate(content) if one in FAULT + _UNDER_WAY
        ]
        return again + list(range(len(content), inputs))

    def begin(self, number):
        """Notes that an input is about to be read."""
        self.note(number, _UNDER_WAY)

    def note(self, number, outcome):
        """Notes what happened to an input: `READ`, `REFUSED` or `FAULT`."""
        os.pwrite(self._file, outcome, number)

    def under_way(self):
        """Returns the number of the input that was begun last, or `None`.

        Inputs with an outcome do not count.
        """
        number = self._content().find(_UNDER_WAY)
        return None if number < 0 else number

    def changed(self):
        """Returns when something was last noted, in nanoseconds."""
        return os.fstat(self._file).st_mtime_ns

    def count(self):
        """Returns the `Count` of all inputs so far."""
        content = self._content()
        numbers = [content.count(one) for one in (REFUSED, READ, FAULT)]
        return Count(sum(numbers), *numbers)

    def _content(self):
        return os.pread(self._file, os.fstat(self._file).st_size, 0)
