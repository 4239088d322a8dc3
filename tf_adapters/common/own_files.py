"""Files and folders that a run writes, and never through a link.

A folder that was copied from somewhere may hold links to files elsewhere. The
name of a file to write is removed first and the file is made new; a link in the
place of a folder is refused. The folder that the user named may be a link.
"""

import os
from pathlib import Path
import shutil

from tf_adapters.common.errors import UserError


def remove(path):
    """Removes a file, a link, or of a folder all that can be removed."""
    path = Path(path)
    if path.is_dir() and not path.is_symlink():
        # A network file system keeps what somebody still reads.
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_link(path):
    """Removes what has this name if it is a link."""
    if Path(path).is_symlink():
        os.unlink(path)


def create(path):
    """Returns a new binary file; an old one of its name is removed first."""
    Path(path).unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, 0o666), "wb")


def open_to_append(path):
    """Returns a text file that is appended to, and made if it is missing."""
    remove_link(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, 0o666), "a", encoding="utf-8")


def replace_file(path, content):
    """Writes a small file whole: it has its old content until then.

    Args:
        path: Path in a folder that exists.
        content: Bytes.
    """
    path = Path(path)
    # Two processes may write the report of one study at the same time.
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with create(partial) as file:
            file.write(content)
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def check_folder(path):
    """Refuses what is there under the name of a folder to write into.

    Raises:
        UserError: If it is a link, or no folder.
    """
    path = Path(path)
    if path.is_symlink():
        raise UserError(
            f"{path} is a link to {os.readlink(path)}, so what is written "
            f"there would not stay in {path.parent}. Remove the link, or put "
            "a copy of the folder in its place."
        )
    if path.exists() and not path.is_dir():
        raise UserError(
            f"{path} is no folder, and one of this name is to be written "
            "there. Move or remove that file."
        )


def make_folder(root, *names):
    """Makes folders, one in the other, and returns the path of the last.

    Args:
        root: Path of the first one, which may be a link to a folder.
        *names: Names of the others.

    Raises:
        UserError: If one of the others is a link, or no folder.
    """
    path = Path(root)
    path.mkdir(parents=True, exist_ok=True)
    for name in names:
        path /= name
        check_folder(path)
        path.mkdir(exist_ok=True)
    return path


def make_new_folder(path):
    """Makes an empty folder; what has its name is removed first."""
    remove(path)
    Path(path).mkdir(parents=True)
