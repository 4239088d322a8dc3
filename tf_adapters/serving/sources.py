"""Finds the adapters to serve, by name."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import os
from pathlib import Path

from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.common.text_files import is_unicode
from tf_adapters.interop import formats
from tf_adapters.interop import hub_address
from tf_adapters.serving.request_error import RequestError

# A study's folder holds folders of tasks, which hold runs.
_LEVELS = 3
# Maximum number of characters of a path, as of Linux.
_LONGEST = 4_096


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


def present_adapters(places: Iterable[str]) -> dict[str, str]:
    """Returns `find_adapters` of the places that can be read.

    If two adapters have one name, the first one is found.
    """
    found: dict[str, str] = {}
    for place in places:
        with contextlib.suppress(ConfigError, OSError):
            for name, source in _adapters_at(place):
                found.setdefault(name, source)
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


def check_allowed(source: str, allowed: Collection[str]) -> None:
    """Raises a `RequestError` if a client may not name a source.

    Args:
        source: Path or `hf://` address.
        allowed: See `is_allowed`.

    Raises:
        RequestError: With status 400 if the source cannot be a path, or 403.
    """
    if len(source) > _LONGEST or "\0" in source or not is_unicode(source):
        raise RequestError(
            400,
            f"`source` must be a path or an address of at most {_LONGEST:,} "
            "characters, without NUL and half characters.",
        )
    if not is_allowed(source, allowed):
        raise RequestError(
            403,
            f"This server does not load adapters from {cut(source)}. "
            "--allow_sources lists what it may load.",
        )


def is_allowed(source: str, allowed: Collection[str]) -> bool:
    """Returns whether a client may have an adapter loaded from a source.

    Args:
        source: Path or `hf://` address, see `check_allowed`.
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
    # An empty path would be the working folder.
    folders = [a for a in allowed if a and "://" not in a]
    if not folders or "://" in source:
        return False
    # Unlike `Path.resolve`, this does not fail for links in a circle.
    path = Path(os.path.realpath(source))
    return any(path.is_relative_to(os.path.realpath(a)) for a in folders)
