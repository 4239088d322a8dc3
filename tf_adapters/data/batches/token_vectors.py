"""Stores vectors for the tokens of all examples, in memory or in a file."""

import os
from pathlib import Path
import tempfile
from typing import Any

import ml_dtypes
import numpy as np

DTYPES = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}


class TokenVectors:
    """Stores a vector for each token of each example, without padding.

    Args:
        name: Name of the model's input that takes the vectors.
        lengths: Integer array `(examples,)`, the number of tokens of each
            example.
        width: Integer, width of a vector.
        dtype: One of `DTYPES`, the type of the stored numbers.
        folder: Path of a folder for a file with the vectors, or `None`
            (default) to keep them in memory. The file is deleted when the
            process ends.

    Raises:
        OSError: If there is no room for the file.
    """

    def __init__(
        self,
        name: str,
        lengths: np.ndarray,
        width: int,
        dtype: str,
        folder: Path | None = None,
    ) -> None:
        self.name = name
        self.dtype = np.dtype(DTYPES[dtype])
        self.ends = np.cumsum(lengths)
        self.starts = self.ends - lengths
        shape = (int(np.sum(lengths)), width)
        if folder is None:
            self._rows = np.empty(shape, self.dtype)
            return
        with tempfile.TemporaryFile(dir=folder) as file:
            # Reserve the whole file: if the disk were full later, writing to
            # the memory-mapped file would end the process.
            _reserve(file, num_bytes(shape[0], width, dtype))
            self._rows = np.memmap(file, self.dtype, "r+", shape=shape)

    @property
    def width(self) -> int:
        """Width of a vector."""
        return self._rows.shape[1]

    def put(self, index: int, vectors: np.ndarray) -> None:
        """Stores the vectors of an example.

        Args:
            index: Index of the example.
            vectors: Array `(tokens, width)`. Rows after the example's last
                token are padding and are ignored.
        """
        start, end = self.starts[index], self.ends[index]
        self._rows[start:end] = vectors[: end - start]

    def read(self, indices: np.ndarray, length: int) -> np.ndarray:
        """Returns the vectors of some examples, padded with zeros.

        Args:
            indices: Integer array `(batch,)`.
            length: Number of tokens to pad to.

        Returns:
            Array `(batch, length, width)`.
        """
        found = np.zeros((len(indices), length, self.width), self.dtype)
        for row, index in zip(found, indices, strict=True):
            start, end = self.starts[index], self.ends[index]
            row[: end - start] = self._rows[start:end]
        return found


def num_bytes(tokens: int, width: int, dtype: str) -> int:
    """Returns the number of bytes that vectors of `tokens` tokens take."""
    return tokens * width * np.dtype(DTYPES[dtype]).itemsize


def _reserve(file: Any, size: int) -> None:
    """Makes room for `size` bytes in an open file."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    # On macOS and Windows. A file that is only made longer takes no room yet.
    zeros = bytes(2**20)
    for start in range(0, size, len(zeros)):
        file.write(zeros[: size - start])
    file.flush()
