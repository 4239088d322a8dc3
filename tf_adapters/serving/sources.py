"""Finds the adapters to serve, by name."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
import os
from pathlib import Path

from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.interop import formats
from tf_adapters.interop import hub_address

# A study's folder holds folders of tasks, which hold runs.
_LEVELS = 3


def find_adapters(places: Iterable[str]) -> dict[str, str]:
    """Returns a dict from the name of each adapter to its path or address.

    Args:
        places: Folders of adapters, of runs, or of folders with runs, and
            addresses on the Hugging Face Hub. An adapter is named after its run
            folder, with the folders above it inside the given folder, separated
            by dots.

    Raises:
        ConfigError: If a folder does not exist, or two adapters have one name.
    """
    found: dict[str, str] = {}
    for place in places:
        for name, source in _adapters_at(place):
            if found.setdefault(name, source) != source:
                raise ConfigError(
                    f"Two adapters have the name `{cut(name)}`: "
                    f"{cut(found[name])} and {cut(source)}. Rename a folder."
                )
    return found


def _adapters_at(place: str) -> Iterator[tuple[str, str]]:
    if hub_address.is_address(place):
        yield hub_address.name_of(place).rpartition("/")[2], place
        return
    folder = Path(place).absolute()
    if not folder.is_dir():
        raise ConfigError(f"There is no folder {cut(place)}.")
    if holds_adapter(folder):
        yield _name_of(folder), str(folder)
    else:
        yield from _below(folder, "", _LEVELS)


def _below(folder: Path, prefix: str, levels: int) -> Iterator[tuple[str, str]]:
    """Yields the name and path of each adapter below a folder."""
    for child in sorted(folder.iterdir()):
        # The name of a folder that is being written begins with a dot.
        if child.name.startswith(".") or not child.is_dir():
            continue
        if holds_adapter(child):
            yield prefix + child.name, str(child)
        elif levels > 1:
            yield from _below(child, f"{prefix}{child.name}.", levels - 1)


def _name_of(folder: Path) -> str:
    return folder.parent.name if folder.name == "adapter" else folder.name


def holds_adapter(folder: Path) -> bool:
    """Returns whether a folder is an adapter folder or a run that has one."""
    files = (adapter_folder.CONFIG_FILE, formats.SETUP_FILE)
    return any(
        os.path.isfile(one / name)
        for one in (folder, folder / "adapter")
        for name in files
    )


def is_allowed(source: str, allowed: Iterable[str]) -> bool:
    """Returns whether a client may have an adapter loaded from a source.

    Args:
        source: Path or `hf://` address.
        allowed: Folders, and beginnings of `hf://` addresses. A folder allows
            what is inside it, after links are followed. An address ends where
            a name ends.
    """
    if hub_address.is_address(source):
        starts = (a.rstrip("/") for a in allowed if hub_address.is_address(a))
        return any(
            source == start or source.startswith((f"{start}/", f"{start}@"))
            for start in starts
        )
    path = Path(source).resolve()
    folders = (Path(a).resolve() for a in allowed if "://" not in a)
    return "://" not in source and any(
        path.is_relative_to(folder) for folder in folders
    )
