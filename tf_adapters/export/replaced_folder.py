"""Replaces the folder of an earlier export if the new export succeeds."""

from __future__ import annotations

import contextlib
from pathlib import Path
import tempfile
from typing import TYPE_CHECKING

from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator
    import os


@contextlib.contextmanager
def replaced_folder(
    folder: str | os.PathLike[str], file: str, what: str
) -> Iterator[Path]:
    """Context manager that yields an empty folder to write to.

    At the end of the `with` block, the new folder replaces `folder`. If the
    block raises an error, `folder` is not changed.

    Args:
        folder: Path of the folder to replace. It need not exist.
        file: Pattern for the name of the main file of an earlier export, such
            as `"model*.onnx"`.
        what: Kind of that file, for the error message, such as "ONNX file".

    Raises:
        UserError: If the folder exists, but is not an earlier export, or if it
            is the working folder.
    """
    # The name of "." is empty.
    folder = Path(folder).absolute()
    adapter_folder.check_not_working_folder(folder)
    _check_replaced(folder, file, what)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as scratch:
        # Keep the folder's name, because some formats store it.
        new = Path(scratch) / folder.name
        new.mkdir()
        yield new
        adapter_folder.replace(folder, new)


def _check_replaced(folder: Path, file: str, what: str) -> None:
    is_export = folder.is_dir() and any(folder.glob(file))
    is_empty = folder.is_dir() and not any(folder.iterdir())
    if folder.exists() and not (is_export or is_empty):
        raise UserError(
            f"{folder} exists and holds no {what}; exporting there would "
            "replace it. Give a path that does not exist yet."
        )
