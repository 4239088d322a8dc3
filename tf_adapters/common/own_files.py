"""Writes files and folders without following symbolic links.

A folder that was copied from elsewhere may contain links to other files. These
functions remove an existing file or link before they create a file, and raise
an error if a folder is a link. Only the folder that the user specified may be a
link.
"""

import os
from pathlib import Path
import shutil
from typing import BinaryIO
from typing import TextIO

from tf_adapters.common.errors import UserError

# Windows does not have the first of these flags, and only Windows has the
# second: without it, Windows changes line ends.
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def remove(path: str | Path) -> None:
    """Removes a file, a link or a folder, if it exists.

    If a file inside a folder cannot be removed, it is left there.
    """
    path = Path(path)
    if path.is_dir() and not path.is_symlink():
        # A network file system keeps files that are still open.
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_link(path: str | Path) -> None:
    """Removes a path if it is a symbolic link."""
    if Path(path).is_symlink():
        os.unlink(path)


def create(path: str | Path) -> BinaryIO:
    """Opens a new binary file for writing; removes an existing file first."""
    Path(path).unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS
    return os.fdopen(os.open(path, flags, 0o666), "wb")


def open_to_append(path: str | Path) -> TextIO:
    """Opens a text file for appending, and creates it if it is missing."""
    remove_link(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | _NO_LINKS
    return os.fdopen(os.open(path, flags, 0o666), "a", encoding="utf-8")


def replace_file(path: str | Path, content: bytes) -> None:
    """Writes a small file atomically.

    Readers see either the old content or the complete new content.

    Args:
        path: Path of the file, in an existing folder.
        content: Bytes to write.
    """
    path = Path(path)
    # The name has the process id, because two processes may write the report of
    # a study at the same time.
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with create(partial) as file:
            file.write(content)
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def check_folder(path: str | Path) -> None:
    """Checks that a path can be used as a folder to write to.

    Raises:
        UserError: If the path is a link, or exists but is not a folder.
    """
    path = Path(path)
    if path.is_symlink():
        raise UserError(
            f"{path} is a link to {os.readlink(path)}, so files written there "
            f"would not stay in {path.parent}. Remove the link, or put a copy "
            "of the folder in its place."
        )
    if path.exists() and not path.is_dir():
        raise UserError(
            f"{path} is a file, but a folder must be written there. Move or "
            "remove the file."
        )


def make_folder(root: str | os.PathLike[str], *names: str) -> Path:
    """Creates nested folders and returns the path of the innermost.

    Args:
        root: Path of the outermost folder, which may be a link to a folder.
        *names: Names of the nested folders.

    Raises:
        UserError: If one of the nested folders is a link, or exists but is not
            a folder.
    """
    path = Path(root)
    path.mkdir(parents=True, exist_ok=True)
    for name in names:
        path /= name
        check_folder(path)
        path.mkdir(exist_ok=True)
    return path


def make_new_folder(path: str | Path) -> None:
    """Creates an empty folder; an existing file or folder is removed first."""
    remove(path)
    Path(path).mkdir(parents=True)
