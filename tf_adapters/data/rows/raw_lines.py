"""Opens data files, and reads lines of a limited length."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut

# In bytes. A file of SQuAD is a single line.
_LONGEST = 1 << 28


def open_lines(path: Path) -> Iterator[bytes]:
    """Opens a data file and returns an iterator over its lines.

    Raises:
        DataError: If the file is missing, cannot be read, or is a folder, a
            pipe or a device; later, if a line is too long.
    """
    try:
        # Opening a pipe can block forever.
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise OSError(None, "it is not a file")
        file = path.open("rb")
    except OSError as error:
        raise DataError(
            f"Cannot read {cut(path)}: {error.strerror}."
        ) from error
    return limited_lines(file, str(path))


def limited_lines(file: BinaryIO, origin: str) -> Iterator[bytes]:
    """Yields the lines of an open file, and closes it.

    Args:
        file: Binary file.
        origin: Name of the file in error messages.

    Raises:
        DataError: If a line has more than 256 MiB. The error is raised when
            the line is read.
    """
    number = 0
    with file:
        while line := file.readline(_LONGEST + 1):
            number += 1
            if len(line) > _LONGEST:
                raise DataError(
                    f"{cut(origin)}: line {number} has more than {_LONGEST:,} "
                    "bytes. Expected a text file with a row on each line."
                )
            yield line
