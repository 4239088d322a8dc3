"""The files of an adapter folder, read strictly."""

import json
from pathlib import Path

import safetensors
import safetensors.numpy

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter.safetensors"
FORMAT_VERSION = 1


class AdapterError(ValueError):
    """An adapter folder that cannot be used, and why."""


def read_config(folder):
    """Returns the parsed `adapter_config.json` of a folder.

    Raises:
        AdapterError: If it is missing or no such file.
    """
    path = Path(folder) / CONFIG_FILE
    if not path.is_file():
        raise AdapterError(
            f"{folder} is no adapter folder: it has no {CONFIG_FILE}. Expected "
            "the folder that `save_adapter` wrote, for example "
            "<model_dir>/adapter."
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        version = config["format_version"]
        config["encoder"]["fingerprint"], config["method"]["name"]
    except (ValueError, KeyError, TypeError) as error:
        raise AdapterError(
            f"{path} is damaged or not of this library: {error!r}"
        ) from error
    if version != FORMAT_VERSION:
        raise AdapterError(
            f"{path} has format {version}; this version of tf_adapters reads "
            f"format {FORMAT_VERSION}. Upgrade tf_adapters."
        )
    return config


def read_tensors(path):
    try:
        return safetensors.numpy.load_file(path)
    except FileNotFoundError as error:
        raise AdapterError(
            f"{path} is missing: the adapter folder is incomplete."
        ) from error
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise AdapterError(
            f"{path} cannot be read, it is truncated or damaged ({error}). "
            "Copy it again from where it was trained."
        ) from error
