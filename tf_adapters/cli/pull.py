"""`tf-adapters pull ADDRESS FOLDER`: downloads an adapter from the Hub."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
import shutil
import tempfile
from typing import Any

from tf_adapters.cli.command import Command
from tf_adapters.cli.command import said
from tf_adapters.common import own_files
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import ConfigError

# Start of the name of the folder that a download is copied to first.
_SCRATCH = ".pull-"


def run_pull(
    options: Any, layer: dict[str, Any], arguments: Sequence[str]
) -> None:
    """Downloads an adapter from the Hub to a folder, and prints the path.

    See `Command.run` for this function's arguments.

    Raises:
        ConfigError: If the command does not have exactly two arguments.
        AdapterError: If the folder is not empty.
    """
    if len(arguments) != 2:
        raise ConfigError(
            "`tf-adapters pull` takes hf://owner/name[@revision] and the "
            f"folder to write it to. Received: {said(arguments)}"
        )
    # Imported here, so that --help is fast.
    from tf_adapters.interop import hub

    address, folder = arguments[0], Path(arguments[1])
    for rest in folder.glob(_SCRATCH + "*"):
        own_files.remove(rest)  # Of a download that was killed.
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise AdapterError(
            f"{folder} already exists. Give a new or empty folder, so that the "
            "files of two adapters are not mixed."
        )
    # The cache keeps what a broken download has, and is there offline.
    _copy(hub.pull(address), folder)
    print(folder.resolve())


def _copy(cached: Path, folder: Path) -> None:
    """Copies an adapter from the cache, whose other files may be anyone's."""
    from tf_adapters.interop import hub

    folder.mkdir(parents=True, exist_ok=True)
    # Files are moved when all are there. After a copy that broke, the command
    # can be repeated. The folder may be on a disk of its own, to which files
    # from outside cannot be renamed.
    with tempfile.TemporaryDirectory(dir=folder, prefix=_SCRATCH) as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(cached, copy, ignore=hub.other_files)
        for path in copy.iterdir():
            path.rename(folder / path.name)


COMMAND = Command(
    name="pull",
    summary="Downloads an adapter from the Hugging Face Hub.",
    usage="hf://OWNER/NAME[@REVISION] FOLDER",
    examples=("tf-adapters pull hf://owner/name@v1 downloads/name",),
    groups={"Output": ("verbose",)},
    run=run_pull,
)
