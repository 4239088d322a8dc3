"""Replaces the folder of an earlier export if the new export succeeds."""

from __future__ import annotations

import contextlib
from pathlib import Path
import tempfile
from typing import TYPE_CHECKING

from tf_adapters.common import adapter_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    import os


@contextlib.contextmanager
def replaced_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Context manager that yields an empty folder to write to.

    At the end of the `with` block, the new folder replaces `folder`. If the
    block raises an error, `folder` is not changed.

    Args:
        folder: Path of the folder to replace. It need not exist.
    """
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as scratch:
        # Keep the folder's name, because some formats store it.
        new = Path(scratch) / folder.name
        new.mkdir()
        yield new
        adapter_folder.replace(folder, new)
