"""Finds an adapter folder of any format and reads its JSON file once."""

import dataclasses
import functools
import os
from pathlib import Path
from typing import Any

from tf_adapters.common import adapter_folder
from tf_adapters.interop import formats
from tf_adapters.interop import hub
from tf_adapters.interop import hub_address


@dataclasses.dataclass(frozen=True)
class StoredAdapter:
    """The location and format of an adapter folder.

    The folder can still be damaged or missing; `config` checks it.

    Attributes:
        source: The address or path that the user gave.
        path: Path of the folder itself.
        format: `"tf_adapters"`, `"adapterhub"` or `"peft"`. A folder that is
            missing or damaged counts as `"tf_adapters"`.
        parsed: Dict with the contents of the folder's JSON file, or `None` if
            the file cannot be read.
    """

    source: Any
    path: Path
    format: str
    parsed: dict[str, Any] | None

    @property
    def address(self) -> str | None:
        """The folder's `hf://` address, or `None` if the user gave a path."""
        is_remote = hub_address.is_address(self.source)
        return str(self.source) if is_remote else None

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """The contents of the folder's JSON file.

        If the format is this library's own, the contents have been checked.

        Raises:
            AdapterError: If the file is missing or damaged.
        """
        if self.format == formats.OURS:
            return adapter_folder.read_adapter_config(self.path, self.parsed)
        if self.parsed is None:
            # Read the file again, to raise an error that says what is wrong.
            return formats.read_json(formats.json_file(self.path))
        return self.parsed


def find_stored(folder: str | os.PathLike[str]) -> StoredAdapter:
    """Finds an adapter folder, and returns its location and format.

    Args:
        folder: One of: the path of an adapter folder; the path of the run that
            wrote one; or `hf://owner/name@revision`, which is downloaded if
            needed.

    Raises:
        AdapterError: If an address cannot be downloaded.
    """
    is_remote = str(folder).startswith(hub_address.SCHEME)
    path = Path(hub.pull(str(folder)) if is_remote else folder)
    if not os.path.isfile(path / formats.SETUP_FILE):
        path = adapter_folder.find_adapter_folder(path)
    return StoredAdapter(folder, path, *formats.read_format(path))
