"""Run folders on TensorFlow's file systems, such as `gs://bucket/run`.

Such a URL is called the address of the run folder. The run itself reads and
writes a local folder. Before the run, the files at the address are copied to
this folder. New files are copied to the address with each checkpoint, with each
better adapter, and at the end. The local folder stores its address in a file.
"""

from collections.abc import Callable
import json
import os
from pathlib import Path
import tempfile
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.settings_text import load_yaml
from tf_adapters.common.text_files import replace_text
from tf_adapters.config import resolve

_ADDRESS = ".address"
_PUSHED = ".pushed"
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
    replace_text(path / _ADDRESS, address)
    _checked(_pull, address, path)
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
    return "/".join([_address_of(root), *Path(path).relative_to(root).parts])


def copy_to_address(folder: Path) -> None:
    """Copies new files of a run folder to its address, if it has one.

    An address is a URL such as `gs://bucket/run`. Files that were removed from
    the folder are removed at the address too.

    Raises:
        ConfigError: If the address cannot be written to.
    """
    root = _root(folder)
    if root is not None:
        _checked(_push, _address_of(root), root)


def _root(path: Path) -> Path | None:
    """Returns the run folder that contains `path`, if it has an address.

    Otherwise returns `None`.
    """
    for folder in (Path(path), *Path(path).parents):
        if (folder / _ADDRESS).exists():
            return folder
    return None


def _address_of(root: Any) -> str:
    return (root / _ADDRESS).read_text(encoding="utf-8")


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
        there.mkdir(parents=True, exist_ok=True)
        for name in names:
            gfile.copy(f"{folder.rstrip('/')}/{name}", str(there / name))
    _remember(path, _files(path))


def _push(gfile: Any, address: Any, path: Path) -> None:
    now, before = _files(path), _pushed(path)
    changed = [name for name in now if now[name] != before.get(name)]
    for name in sorted(changed, key=_turn):
        gfile.makedirs(f"{address}/{name}".rpartition("/")[0])
        gfile.copy(str(path / name), f"{address}/{name}", overwrite=True)
    # Remove the files that mark a checkpoint or a run as complete first, so
    # that a partial copy never looks complete.
    gone = before.keys() - now.keys()
    for name in sorted(gone, key=lambda name: (not name.endswith(_LAST), name)):
        gfile.remove(f"{address}/{name}")
    _remember(path, now)


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


def _pushed(path: Path) -> Any:
    file = path / _PUSHED
    return json.loads(file.read_text()) if file.exists() else {}


def _remember(path: Path, files: Any) -> None:
    replace_text(path / _PUSHED, json.dumps(files))
