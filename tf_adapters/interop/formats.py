"""Detects the library that wrote an adapter folder."""

import os
from pathlib import Path
from typing import Any

from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.common.text_files import parse_json
from tf_adapters.common.text_files import read_text

SETUP_FILE = "adapter_setup.json"
FORMATS = ("adapterhub", "peft")
OURS = "tf_adapters"


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a JSON file and returns its object as a dict.

    Raises:
        AdapterError: If the file is missing, damaged, or not a JSON object.
    """
    try:
        config = parse_json(read_text(path))
    except ValueError as error:
        raise AdapterError(f"{path} cannot be read: {cut(error)}") from error
    if not isinstance(config, dict):
        raise AdapterError(f"{path} is damaged: it is not a JSON object.")
    return config


def json_file(folder: str | os.PathLike[str]) -> Path:
    """Returns the path of the JSON file that describes an adapter folder."""
    setup = Path(folder) / SETUP_FILE
    if os.path.isfile(setup):
        return setup
    return Path(folder) / adapter_folder.CONFIG_FILE


def read_format(
    folder: str | os.PathLike[str],
) -> tuple[str, dict[str, Any] | None]:
    """Returns a folder's format and the contents of its JSON file.

    Args:
        folder: Path.

    Returns:
        A tuple of two. The format is `"adapterhub"`, `"peft"`, or, for any
        other folder, `"tf_adapters"`. The contents are a dict, or `None` if the
        file is missing or damaged.
    """
    path = json_file(folder)
    try:
        parsed = read_json(path)
    except AdapterError:
        parsed = None
    if path.name == SETUP_FILE:
        return "adapterhub", parsed
    if parsed is None:
        return OURS, None
    if "peft_type" in parsed:
        return "peft", parsed
    is_theirs = "config" in parsed and "format_version" not in parsed
    return ("adapterhub" if is_theirs else OURS), parsed
