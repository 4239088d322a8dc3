"""Run folders on a file system of TensorFlow's, for example `gs://bucket/run`.

A run reads and writes a local folder. What is at the address comes there
before, and what is new goes to the address at each checkpoint, each better
adapter, and at the end. The local folder remembers its address in a file.
"""

import json
import os
from pathlib import Path
import tempfile

from tf_adapters.common.dataclass_config import load_yaml
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.text_files import replace_text
from tf_adapters.config import resolve

_ADDRESS = ".address"
_PUSHED = ".pushed"
# Of a checkpoint and of a run, these say that the rest is whole.
_LAST = ("state.json", "result.json")


def local(folder):
    """Returns the local folder of a run, and brings what lies at its address.

    Args:
        folder: Path, or an address with `://`.

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
    if _has_encoder_beside(path):
        _checked(_pull, f"{above}/encoder", path.parent / "encoder")
    return path


def _has_encoder_beside(path):
    """Whether a run trained together with others; see `config.save`."""
    try:
        encoder = load_yaml(path / "config.yaml").get("encoder")
    except ConfigError:
        return False  # None is there, or a damaged one: its reader will say.
    return encoder == resolve.ENCODER_BESIDE


def address(path):
    """Returns where a file of a run is for its user, as text."""
    root = _root(path)
    if root is None:
        return str(path)
    return "/".join([_address_of(root), *Path(path).relative_to(root).parts])


def push(folder):
    """Brings what is new in a run's folder to its address, if it has one.

    Raises:
        ConfigError: If the address cannot be written to.
    """
    root = _root(folder)
    if root is not None:
        _checked(_push, _address_of(root), root)


def _root(path):
    """Returns the folder with an address that `path` is in, or `None`."""
    for folder in (Path(path), *Path(path).parents):
        if (folder / _ADDRESS).exists():
            return folder
    return None


def _address_of(root):
    return (root / _ADDRESS).read_text(encoding="utf-8")


def _checked(function, address, path):
    import tensorflow as tf

    try:
        function(tf.io.gfile, address, path)
    except (tf.errors.OpError, OSError) as error:
        raise ConfigError(
            f"Cannot read or write {address}: {str(error).splitlines()[0]} "
            f"What there is of the run lies in {path}."
        ) from error


def _pull(gfile, address, path):
    if not gfile.exists(address):
        return
    path.mkdir(exist_ok=True)
    for folder, _, names in gfile.walk(address):
        there = path / folder.removeprefix(address).strip("/")
        there.mkdir(parents=True, exist_ok=True)
        for name in names:
            gfile.copy(f"{folder.rstrip('/')}/{name}", str(there / name))
    _remember(path, _files(path))


def _push(gfile, address, path):
    now, before = _files(path), _pushed(path)
    changed = [name for name in now if now[name] != before.get(name)]
    for name in sorted(changed, key=_turn):
        gfile.makedirs(f"{address}/{name}".rpartition("/")[0])
        gfile.copy(str(path / name), f"{address}/{name}", overwrite=True)
    # And goes first: half of the rest is not to look whole.
    gone = before.keys() - now.keys()
    for name in sorted(gone, key=lambda name: (not name.endswith(_LAST), name)):
        gfile.remove(f"{address}/{name}")
    _remember(path, now)


def _turn(name):
    """Sorts what says whose the rest is first, and that it is whole last."""
    return name.endswith(_LAST), not name.endswith("config.yaml"), name


def _files(path):
    """Returns size and time of each file by name, but for hidden ones."""
    found = {}
    for folder, _, names in os.walk(path):
        for name in names:
            file = Path(folder, name)
            relative = file.relative_to(path)
            if not any(part.startswith(".") for part in relative.parts):
                stat = file.stat()
                found[relative.as_posix()] = [stat.st_size, stat.st_mtime_ns]
    return found


def _pushed(path):
    file = path / _PUSHED
    return json.loads(file.read_text()) if file.exists() else {}


def _remember(path, files):
    replace_text(path / _PUSHED, json.dumps(files))
