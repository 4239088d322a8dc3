"""What a fuzzer knows of a reader of files, and how answers are compared."""

import collections
from collections.abc import Callable
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Reader:
    """A part of the library that reads files.

    Attributes:
        make: Function that writes an undamaged example into an empty folder.
            Called with the folder.
        read: Function that reads such a folder. It returns anything that
            `digest` takes, or raises a `UserError`.
        sealed: Names of the files that have a checksum. Damage to them has no
            effect on the answer, or the folder is refused.
        special: Whether pipes, devices and so on may take the place of files.
        writes: Whether `read` also writes into the folder.
    """

    make: Callable[[Path], Any]
    read: Callable[[Path], Any]
    sealed: tuple[str, ...] = ()
    special: bool = True
    writes: bool = False


def digest(value):
    """Returns a string that differs if values differ."""
    parts = [type(value).__name__]
    if isinstance(value, np.ndarray):
        parts += [value.dtype, value.shape, np.ascontiguousarray(value)]
        parts[-1] = parts[-1].tobytes()
    elif isinstance(value, dict):
        parts += sorted((repr(k), digest(v)) for k, v in value.items())
    elif isinstance(value, list | tuple):
        parts += [digest(inner) for inner in value]
    else:
        parts.append(value)
    return hashlib.md5(repr(parts).encode()).hexdigest()


def write_json(path, value):
    """Writes a value as JSON, and missing folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def files_of(folder):
    """Returns the names of all files of a folder, largest last."""
    sizes = collections.Counter(
        {
            path.relative_to(folder).as_posix(): path.stat().st_size
            for path in folder.rglob("*")
            if path.is_file()
        }
    )
    return sorted(sizes, key=lambda name: (sizes[name], name))
