"""Writes files of tensors."""

from pathlib import Path

import numpy as np
import safetensors.numpy


def write_tensors(
    path: str | Path,
    tensors: dict[str, np.ndarray],
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes arrays as a safetensors file.

    Args:
        path: Path of the file.
        tensors: Dict from name to array.
        metadata: Dict of strings for the header of the file. Default: none.

    Raises:
        OSError: If the file cannot be written. (The function `save_file` of
            safetensors raises an error of its own if the disk is full.)
    """
    Path(path).write_bytes(safetensors.numpy.save(tensors, metadata))
