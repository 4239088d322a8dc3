"""Locks a run folder, so that one process at a time writes to it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import filelock

from tf_adapters.common import own_files
from tf_adapters.common.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


# The process that trains in the folder holds the lock on this file.
LOCK = ".lock"


def lock_folder(folder: Path) -> Any:
    """Acquires and returns the lock of a run folder.

    The process holds the lock until it calls `release` or ends.

    Raises:
        ConfigError: If another process holds the lock.
    """
    own_files.remove_link(folder / LOCK)
    # A thread may release the lock that another thread acquired.
    lock = filelock.FileLock(folder / LOCK, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except filelock.Timeout as error:
        raise ConfigError(
            f"Another process is training in {folder}. Wait for it, stop it, "
            "or give another --model_dir."
        ) from error
    return lock
