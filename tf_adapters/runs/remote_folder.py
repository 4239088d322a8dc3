"""Run folders on TensorFlow's file systems, such as `gs://bucket/run`.

Such a URL is called the address of the run folder. The run itself reads and
writes a local folder. Before the run, the files at the address are copied to
this folder. New files are copied to the address with each checkpoint, with each
better adapter, and at the end.

Which folder belongs to which address is known to this process only. If it were
stored in the folder, a folder from someone else could have any file sent to any
place, and any file of the user overwritten.
"""

from collections.abc import Callable
import dataclasses
import os
from pathlib import Path
import tempfile
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.settings_text import load_yaml
from tf_adapters.config import resolve


@dataclasses.dataclass
class _Copy:
    """A local folder's address, and the files that are there.

    Attributes:
        address: The URL.
        files: Dict from relative path to the file's size and modification time
            when it was copied last; see `_files`.
    """

    address: str
    files: dict[str, Any] = dataclasses.field(default_factory=dict)


# Key: resolved path of the local folder.
_COPIES: dict[Path, _Copy] = {}
# These files mark a checkpoint and a run as complete.
_LAST = ("state.json", "result.json")


def local(folder: Any) -> Path:
    """Returns a local folder with a run's files, and downloads them if needed.

    Args:
        folder: Path of the run folder, or its address, such as
            `gs://bucket/run`. The files at an address are copied to a new
            temporary folder.

    Returns:
        Path of the local folder.

    Raises:
        ConfigError: If the address cannot be read.
    """
    if "://" not in str(folder):
        return Path(folder).expanduser()
    address = str(folder).rstrip("/")
    above, _, name = address.rpartition("/")
    path = Path(tempfile.mkdtemp(prefix="tf_adapters_"), name)
    path.mkdir()
    _checked(_pull, address, path)
    _COPIES[path.resolve()] = _Copy(address, _files(path))
    if _has_sibling_encoder(path):
        _checked(_pull, f"{above}/encoder", path.parent / "encoder")
    return path


def _has_sibling_encoder(path: Path) -> bool:
    """Returns whether a run's encoder is saved next to the run folder.

    The encoder is there if several tasks trained it together, see
    `resolve.save_config`.
    """
    try:
        encoder = load_yaml(path / "config.yaml").get("encoder")
    except ConfigError:
        return False  # Missing or damaged: its reader reports that.
    return encoder == resolve.SIBLING_ENCODER


def address(path: Any) -> str:
    """Returns the path of a file in a run folder, as shown to the user.

    If the run folder has an address, such as `gs://bucket/run`, the returned
    string starts with the address.
    """
    root = _root(path)
    if root is None:
        return str(path)
    inner = Path(path).resolve().relative_to(root)
    return "/".join([_COPIES[root].address, *inner.parts])


def copy_to_address(folder: Path) -> None:
    """Copies new files of a run folder to its address, if it has one.

    An address is a URL such as `gs://bucket/run`. Files that were removed from
    the folder are removed at the address too.

    Raises:
        ConfigError: If the address cannot be written to.
    """
    root = _root(folder)
    if root is not None:
        _checked(_push, _COPIES[root].address, root)


def _root(path: Path) -> Path | None:
    """Returns the run folder that contains `path`, if it has an address.

    Otherwise returns `None`. The returned path is resolved.
    """
    if not _COPIES:
        return None
    path = Path(path).resolve()
    return next((p for p in (path, *path.parents) if p in _COPIES), None)


def _checked(function: Callable[..., Any], address: Any, path: Path) -> None:
    import tensorflow as tf

    try:
        function(tf.io.gfile, address, path)
    except (tf.errors.OpError, OSError) as error:
        raise ConfigError(
            f"Cannot read or write {address}: {str(error).splitlines()[0]} The "
            f"run's files so far are in {path}."
        ) from error


def _pull(gfile: Any, address: Any, path: Path) -> None:
    if not gfile.exists(address):
        return
    path.mkdir(exist_ok=True)
    for folder, _, names in gfile.walk(address):
        there = path / folder.removeprefix(address).strip("/")
        if ".." in there.parts:
            raise OSError(f"{folder} leads out of the run folder.")
        there.mkdir(parents=True, exist_ok=True)
        for name in names:
            gfile.copy(f"{folder.rstrip('/')}/{name}", str(there / name))


def _push(gfile: Any, address: Any, path: Path) -> None:
    now, before = _files(path), _COPIES[path].files
    changed = [name for name in now if now[name] != before.get(name)]
    for name in sorted(changed, key=_turn):
        gfile.makedirs(f"{address}/{name}".rpartition("/")[0])
        gfile.copy(str(path / name), f"{address}/{name}", overwrite=True)
    # Remove the files that mark a checkpoint or a run as complete first, so
    # that a partial copy never looks complete.
    gone = before.keys() - now.keys()
    for name in sorted(gone, key=lambda name: (not name.endswith(_LAST), name)):
        gfile.remove(f"{address}/{name}")
    _COPIES[path].files = now


def _turn(name: str) -> tuple[bool, bool, str]:
    """Returns a file's sorting key for the order in which files are copied.

    config.yaml comes first. The files that mark a checkpoint or a run as
    complete come last.
    """
    return name.endswith(_LAST), not name.endswith("config.yaml"), name


def _files(path: Path) -> dict[Any, Any]:
    """Returns the size and modification time of each file in a folder.

    Returns a dict from the relative path of each file to these two numbers.
    Hidden files are left out.
    """
    found = {}
    for folder, _, names in os.walk(path):
        for name in names:
            file = Path(folder, name)
            relative = file.relative_to(path)
            if not any(part.startswith(".") for part in relative.parts):
                stat = file.stat()
                found[relative.as_posix()] = [stat.st_size, stat.st_mtime_ns]
    return found
