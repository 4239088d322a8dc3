"""Finds out which texts a stored adapter reads."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.config import resolve
from tf_adapters.config import task as config_task
from tf_adapters.interop import formats

if TYPE_CHECKING:
    from pathlib import Path

    from tf_adapters.interop.stored_adapter import StoredAdapter


def stored_fields(
    folder: Path, details: dict[str, Any]
) -> tuple[str, ...] | None:
    """Returns the names of the texts that an adapter reads, or `None`.

    Args:
        folder: Path of the adapter's folder. If it belongs to a run, and
            `details` has no names, the run's configuration names the texts.
        details: The `details` in `adapter_config.json`, or an empty dict.

    Raises:
        UserError: If the run's configuration cannot be read, or the names in
            `details` are not a list of strings.
    """
    fields = details.get("text_fields") or []
    _check_names(folder, fields)
    config = folder.parent / "config.yaml"
    if not fields and folder.name == "adapter" and config.is_file():
        settings = resolve.load_config(config)
        task = config_task.declared_task(settings, check_files=False)
        fields = task.text_fields
    return tuple(fields) if fields else None


def _check_names(folder: Path, fields: Any) -> None:
    if not isinstance(fields, list | tuple) or not all(
        isinstance(field, str) for field in fields
    ):
        raise AdapterError(
            f"In `adapter_config.json` of {folder}, `text_fields` must be a "
            f"list of strings. Received: {shown(fields)}"
        )


def fields_of(stored: StoredAdapter) -> tuple[str, ...] | None:
    """Returns the names of the texts of a `StoredAdapter`, or `None`.

    It is also `None` if the adapter does not name them, and the file of its
    run's task has moved.
    """
    if stored.format != formats.OURS:
        return None
    try:
        return stored_fields(stored.path, stored.config["details"])
    except UserError:
        return None
