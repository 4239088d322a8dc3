"""Finds the adapters to serve, by name."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import functools
import logging
import os
from pathlib import Path

from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.common.text_files import is_unicode
from tf_adapters.interop import formats
from tf_adapters.interop import hub_address
from tf_adapters.serving.request_error import RequestError

_LOGGER = logging.getLogger(__name__)
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
            by dots. Folders inside the given folder are left out, with a
            warning, if they cannot be read, if their name is not valid Unicode,
            or if they belong to a run that has not finished.

    Raises:
        ConfigError: If a folder does not exist, cannot be read, or belongs to a
            run that has not finished, or two adapters have one name.
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
        _check_servable(folder)
        yield _name_of(folder), str(folder)
    else:
        yield from _below(folder, "", _LEVELS)


def check_finished(folder: Path) -> None:
    """Raises a `ConfigError` if a folder holds a run that has not finished."""
    if _is_unfinished(folder):
        raise ConfigError(
            f"{cut(folder)} holds a run that has not finished: it has no "
            "result.json. Resume it with the command that started it, or give "
            f"its adapter: {cut(folder / 'adapter')}"
        )


def _check_servable(folder: Path) -> None:
    """Raises a `ConfigError` if the adapter of a given folder is not served."""
    check_finished(folder)
    if not is_unicode(_name_of(folder)):
        raise ConfigError(
            f"The name of {cut(ascii(str(folder)))} is not valid Unicode, so "
            "no request can name its adapter. Rename the folder."
        )


def _below(folder: Path, prefix: str, levels: int) -> Iterator[tuple[str, str]]:
    """Yields the name and path of each adapter below a folder.

    Raises:
        ConfigError: If the folder itself cannot be read.
    """
    try:
        children = sorted(folder.iterdir())
    except OSError as error:
        if levels == _LEVELS:
            raise ConfigError(
                f"Cannot read {cut(folder)}: {error.strerror}."
            ) from error
        _warn_once(f"{cut(folder)} is left out: {error.strerror}.")
        return
    for child in filter(_may_be_served, children):
        if holds_adapter(child):
            yield prefix + child.name, str(child)
        elif levels > 1:
            yield from _below(child, f"{prefix}{child.name}.", levels - 1)


def _may_be_served(folder: Path) -> bool:
    """Returns whether to look for adapters in a folder inside a given one."""
    # The name of a folder that is being written begins with a dot. Unlike
    # `Path.is_dir`, this does not fail for a folder that cannot be read.
    if folder.name.startswith(".") or not os.path.isdir(folder):
        return False
    # JSON could not repeat the name, so the list of adapters would fail.
    if not is_unicode(folder.name):
        _warn_once(
            f"{cut(ascii(str(folder)))} is left out: its name is not valid "
            "Unicode. Rename it."
        )
        return False
    if _is_unfinished(folder):
        _warn_once(
            f"{cut(folder)} is left out: it holds a run that has not finished."
        )
        return False
    return not _is_shared_encoder(folder)


@functools.cache
def _warn_once(message: str) -> None:
    """Logs a warning. The folders are read again up to once a second."""
    _LOGGER.warning("%s", message)


def _is_unfinished(folder: Path) -> bool:
    """Returns whether a folder belongs to a run that has not finished.

    Its adapter, if it has one, is only the best one so far.
    """
    if _is_adapter(folder) or os.path.exists(folder / "result.json"):
        return False
    # A run logs its loss before it saves weights. So a folder without a log
    # holds an adapter that was not trained there, such as a pruned fusion.
    with contextlib.suppress(OSError):
        is_trained = (folder / "metrics.jsonl").stat().st_size > 0
        return is_trained and os.path.isfile(folder / "config.yaml")
    return False


def _is_shared_encoder(folder: Path) -> bool:
    """Returns whether a folder is the encoder that several tasks trained.

    A run of these tasks stores it as an adapter without a head.
    """
    if folder.name != "encoder":
        return False
    with contextlib.suppress(AdapterError):
        config = formats.read_json(folder / adapter_folder.CONFIG_FILE)
        return config.get("head", "") is None
    return False


def _name_of(folder: Path) -> str:
    return folder.parent.name if folder.name == "adapter" else folder.name


def holds_adapter(folder: Path) -> bool:
    """Returns whether a folder is an adapter folder or a run that has one."""
    return _is_adapter(folder) or _is_adapter(folder / "adapter")


def _is_adapter(folder: Path) -> bool:
    files = (adapter_folder.CONFIG_FILE, formats.SETUP_FILE)
    return any(os.path.isfile(folder / name) for name in files)


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
