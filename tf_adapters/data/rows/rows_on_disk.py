"""Rows on disk, for a data set that memory does not hold."""

from collections.abc import Sequence
import functools
import json
import os
from pathlib import Path
import tempfile

import numpy as np

from tf_adapters.common.errors import ConfigError


class RowsOnDisk(Sequence):
    """A sequence of dicts of plain values that is read as it is asked for.

    Its file has no name and is gone with the process. Sixteen bytes a row are
    in memory.

    Args:
        file: Open file with a row a line, as JSON.
        offsets: Integer array, where each row begins in it.
        lengths: Integer array, how many bytes each row has.
    """

    def __init__(self, file, offsets, lengths):
        self._file = file
        self._offsets, self._lengths = offsets, lengths

    def __len__(self):
        return len(self._offsets)

    def __getitem__(self, place):
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        offset, length = self._offsets[place], self._lengths[place]
        # Several threads may read: no position of the file is shared.
        return json.loads(os.pread(self._file.fileno(), length, offset))

    def take(self, indices):
        """Returns some rows in an order; they stay on disk."""
        indices = np.asarray(indices, "int64")
        return RowsOnDisk(
            self._file, self._offsets[indices], self._lengths[indices]
        )


def keep_on_disk(folder):
    """Returns a function from an iterable of rows to `SpooledRows`.

    Args:
        folder: Where the file is made; the folder too, if it is not there.
    """
    return functools.partial(_spool, Path(folder))


def _spool(folder, rows):
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        raise ConfigError(
            f"Cannot write to --cache_dir={folder}: {error.strerror}. Give a "
            "folder that you may write to."
        ) from error
    lengths = np.fromiter((_write(file, row) for row in rows), "int64")
    file.flush()
    return RowsOnDisk(file, np.cumsum(lengths) - lengths, lengths)


def _write(file, row):
    return file.write(json.dumps(row).encode() + b"\n")
