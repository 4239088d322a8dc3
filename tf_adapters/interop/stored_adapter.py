"""An adapter folder of any format, found once and its JSON read once."""

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
    """An adapter folder that was found; it may still be damaged or missing.

    Attributes:
        source: What its user named: an address or a path.
        path: Path of the folder itself.
        format: `"tf_adapters"`, `"adapterhub"` or `"peft"`. A folder that is
            missing or damaged counts as one of `tf_adapters`.
        parsed: Dict that its JSON file holds, or `None` if that cannot be read.
    """

    source: Any
    path: Path
    format: str
    parsed: dict | None

    @property
    def address(self):
        """The folder's `hf://` address as text, or `None`."""
        is_remote = hub_address.is_address(self.source)
        return str(self.source) if is_remote else None

    @functools.cached_property
    def config(self):
        """What the folder's JSON says; of this library's format, checked.

        Raises:
            AdapterError: If it is missing or damaged.
        """
        if self.format == formats.OURS:
            return adapter_folder.read_adapter_config(self.path, self.parsed)
        if self.parsed is None:
            # Says what is wrong with the file.
            return formats.read_json(formats.json_file(self.path))
        return self.parsed


def find_stored(folder):
    """Returns the `StoredAdapter` of a folder.

    Args:
        folder: Path of an adapter folder, or of the run that wrote one, or
            `hf://owner/name@revision`, which is downloaded if need be; or a
            `StoredAdapter`, which is returned as it is.

    Raises:
        AdapterError: If an address cannot be downloaded.
    """
    if isinstance(folder, StoredAdapter):
        return folder
    is_remote = hub_address.is_address(folder)
    path = Path(hub.pull(folder) if is_remote else folder)
    if not os.path.isfile(path / formats.SETUP_FILE):
        path = adapter_folder.find_adapter_folder(path)
    return StoredAdapter(folder, path, *formats.read_format(path))
