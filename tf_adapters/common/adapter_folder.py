"""The files of an adapter folder, read strictly."""

import hashlib
import os
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from tf_adapters.common import own_files
from tf_adapters.common.adapter_config_checks import check_config
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.common.text_files import parse_json

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter.safetensors"
FORMAT_VERSION = 1


def find_adapter_folder(folder):
    """Returns an adapter folder: `folder` itself, or that of a run.

    A folder that was being replaced when its process was killed is where
    `replace` had moved it to.
    """
    folder = Path(folder)
    for place in (folder, folder / "adapter"):
        for candidate in (place, _moved_aside(place)):
            # Of a text of any length, which `Path.is_file` does not take.
            if os.path.isfile(candidate / CONFIG_FILE):
                return candidate
    return folder


def replace(folder, new):
    """Moves a folder to the place of another, of which one is always whole.

    Args:
        folder: Path of an adapter folder, which need not exist.
        new: Path of the folder that takes its place, beside it.
    """
    aside = _moved_aside(folder)
    if os.path.lexists(folder):
        own_files.remove(aside)
        folder.rename(aside)
    # A process that is killed here leaves `aside`, which readers then find.
    new.rename(folder)
    own_files.remove(aside)


def _moved_aside(folder):
    return folder.with_name(f".{folder.name}.replaced")


def read_adapter_config(folder, parsed=None):
    """Returns the checked `adapter_config.json` of a folder.

    Args:
        folder: Path.
        parsed: What the file says, or `None` (default) to read it here.

    Raises:
        AdapterError: If it is missing or no such file.
    """
    path = Path(folder) / CONFIG_FILE
    if not os.path.isfile(path):
        raise AdapterError(
            f"{cut(folder)} is no adapter folder: it has no {CONFIG_FILE}. "
            "Expected the folder that `save_adapter` wrote, for example "
            "<model_dir>/adapter."
        )
    try:
        config = parsed
        if parsed is None:
            config = parse_json(path.read_text(encoding="utf-8"))
        version = check_config(config, FORMAT_VERSION)
    except ValueError as error:
        raise AdapterError(
            f"{path} is damaged or not of this library: {error}. Copy it "
            "again from where it was trained."
        ) from error
    if version != FORMAT_VERSION:
        raise AdapterError(
            f"{path} has format {cut(version)}; this version of tf_adapters "
            f"reads format {FORMAT_VERSION}. Upgrade tf_adapters."
        )
    config.setdefault("details", {})
    _resolve_paths(config, Path(folder))
    return config


def with_relative_paths(config, folder):
    """Returns a configuration that says, too, how folders lie from `folder`.

    They may move together: an adapter, its encoder's, a fusion's members.
    """

    def located(entry, key):
        path = Path(entry[key])
        if not (path.is_absolute() and os.path.isdir(path)):
            return entry
        return {**entry, "relative": os.path.relpath(path, folder)}

    members = [located(entry, "folder") for entry in config["members"]]
    encoder = located(config["encoder"], "name")
    return {**config, "encoder": encoder, "members": members}


def _resolve_paths(config, folder):
    """What has moved together with an adapter lies where it did from there."""

    def from_here(path):
        return os.path.normpath(folder.absolute() / path)

    encoder = config["encoder"]
    # It trained with the adapter, and is nowhere else.
    if encoder["name"].startswith(".."):
        encoder["name"] = from_here(encoder["name"])
    entries = [(entry, "folder") for entry in config.get("members", [])]
    for entry, key in [(encoder, "name"), *entries]:
        if "relative" not in entry or os.path.isdir(entry[key]):
            continue
        moved = from_here(entry["relative"])
        if os.path.isdir(moved):
            entry[key] = moved


def checksum(path):
    """Returns the SHA-256 of a file as hexadecimal text."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_weights(folder, config):
    """Returns what an adapter folder holds, a dict from name to array.

    Args:
        folder: Path.
        config: What `read_adapter_config` returned. Its checksum is of the
            file of tensors; folders that were written before there was one
            are read without. Its own settings have none: people edit them.

    Raises:
        AdapterError: If the file is missing, damaged, or not the one that was
            written with the configuration.
    """
    path = Path(folder) / WEIGHTS_FILE
    tensors = read_tensors(path)
    expected = config.get("weights_sha256")
    if expected is not None and checksum(path) != expected:
        raise AdapterError(
            f"{path} is damaged, or not the file that {CONFIG_FILE} was "
            "written with: its checksum is another one. Copy both again from "
            "where it was trained. If you changed it on purpose, remove "
            f"`weights_sha256` from {CONFIG_FILE}."
        )
    return tensors


def read_tensors(path):
    """Returns a dict from name to array.

    Raises:
        AdapterError: If the file is missing or damaged.
    """
    try:
        return safetensors.numpy.load_file(path)
    except FileNotFoundError as error:
        raise AdapterError(
            f"{path} is missing: the adapter folder is incomplete."
        ) from error
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise AdapterError(
            f"{path} cannot be read, it is truncated or damaged "
            f"({cut(error)}). Copy it again from where it was trained."
        ) from error


def assign_tensors(variables, tensors, path):
    """Assigns tensors to the variables of the same names.

    Args:
        variables: Dict from name to Keras variable.
        tensors: Dict from name to array.
        path: Where the tensors come from, for the error.

    Raises:
        AdapterError: See `check`. Then nothing was assigned.
    """
    check_tensors(variables, tensors, path)
    for name, variable in variables.items():
        variable.assign(tensors[name])


def check_tensors(variables, tensors, path):
    """Raises an error unless tensors are what variables of these names hold.

    Raises:
        AdapterError: If a tensor is missing, unexpected, misshaped or not
            finite.
    """
    missing = sorted(set(variables) - set(tensors))
    unexpected = sorted(set(tensors) - set(variables))
    if missing or unexpected:
        raise AdapterError(
            f"{path} does not fit the model. Missing: {_some(missing)}. "
            f"Unexpected: {_some(unexpected)}."
        )
    for name, variable in variables.items():
        if tuple(tensors[name].shape) != tuple(variable.shape):
            raise AdapterError(
                f"{path}: weight `{cut(name)}` has shape "
                f"{tensors[name].shape}, but the model needs "
                f"{tuple(variable.shape)}."
            )
        if not np.isfinite(tensors[name]).all():
            raise AdapterError(
                f"{path}: weight `{name}` has values that are not finite. The "
                "file is damaged: copy it again from where it was trained."
            )


def check_finite(tensors):
    """Raises an error if a folder would hold what no reader takes.

    Args:
        tensors: Dict from name to array, about to be written.

    Raises:
        AdapterError: If a value is not finite; names the weight.
    """
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise AdapterError(
                f"Weight `{name}` has values that are not finite, so nothing "
                "was saved: the training went wrong. Train again with a lower "
                "learning rate, and look at the labels."
            )


def _some(names):
    if not names:
        return "none"
    rest = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + rest
