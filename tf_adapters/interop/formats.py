"""Which library a folder is of."""

from pathlib import Path

from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.common.text_files import parse_json

SETUP_FILE = "adapter_setup.json"
FORMATS = ("adapterhub", "peft")


def read_json(path):
    """Returns a parsed JSON file.

    Raises:
        AdapterError: If it is missing, damaged, or no object.
    """
    try:
        config = parse_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise AdapterError(f"{path} cannot be read: {cut(error)}") from error
    if not isinstance(config, dict):
        raise AdapterError(f"{path} is damaged: it is no JSON object.")
    return config


def is_ours(folder):
    """Returns whether a folder holds an adapter of this library's format."""
    try:
        config = read_json(Path(folder) / adapter_folder.CONFIG_FILE)
    except AdapterError:
        return False
    return "format_version" in config


def format_of(folder):
    """Returns `"adapterhub"`, `"peft"`, or `None` of any other folder."""
    folder = Path(folder)
    if (folder / SETUP_FILE).is_file():
        return "adapterhub"
    path = folder / adapter_folder.CONFIG_FILE
    if not path.is_file():
        return None
    try:
        config = read_json(path)
    except AdapterError:
        return None
    if "peft_type" in config:
        return "peft"
    if "config" in config and not is_ours(folder):
        return "adapterhub"
    return None
