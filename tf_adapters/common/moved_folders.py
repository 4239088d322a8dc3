"""Finds folders that were moved along with an adapter, such as its encoder."""

import os
from pathlib import Path
from typing import Any


def with_relative_paths(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Adds paths relative to `folder` to a configuration.

    An adapter, the folder of its encoder and the members of a fusion can then
    be moved together.

    Args:
        config: Dict with the configuration.
        folder: Path of the adapter folder.

    Returns:
        A new dict. Each encoder or member that is an existing folder with an
        absolute path has the additional key `relative`.
    """

    def located(entry: dict[str, Any], key: str) -> dict[str, Any]:
        path = Path(entry[key])
        if not (path.is_absolute() and os.path.isdir(path)):
            return entry
        relative = relative_path(path, folder)
        return {**entry, "relative": relative} if relative else entry

    members = [located(entry, "folder") for entry in config["members"]]
    encoder = located(config["encoder"], "name")
    return {**config, "encoder": encoder, "members": members}


def relative_path(path: Path, folder: Path) -> str | None:
    """Returns a path relative to `folder`.

    On Windows, returns `None` if the path is on another drive.
    """
    try:
        return os.path.relpath(path, folder)
    except ValueError:
        return None


def resolve_paths(config: dict[str, Any], folder: Path) -> None:
    """Updates the paths of folders that were moved along with the adapter.

    If the path of the encoder or of a member no longer exists, it is replaced
    by the path that the entry `relative` gives, if that folder exists.

    Args:
        config: Dict with the adapter's configuration. It is changed in place.
        folder: Path of the adapter folder.
    """

    def from_here(path: str) -> str:
        return os.path.normpath(folder.absolute() / path)

    encoder = config["encoder"]
    # A name that starts with `..` is the relative path of an encoder that the
    # adapter's run trained and stores.
    if encoder["name"].startswith(".."):
        encoder["name"] = from_here(encoder["name"])
    entries = [(entry, "folder") for entry in config.get("members", [])]
    for entry, key in [(encoder, "name"), *entries]:
        if "relative" not in entry or os.path.isdir(entry[key]):
            continue
        moved = from_here(entry["relative"])
        if os.path.isdir(moved):
            entry[key] = moved
