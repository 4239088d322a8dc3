"""Reads the files of an adapter folder, and rejects malformed files."""

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from tf_adapters.common import own_files
from tf_adapters.common.adapter_config_checks import check_config
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import some
from tf_adapters.common.moved_folders import resolve_paths
from tf_adapters.common.text_files import parse_json
from tf_adapters.common.text_files import read_text

if TYPE_CHECKING:
    import keras

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter.safetensors"
FORMAT_VERSION = 1


def find_adapter_folder(folder: str | os.PathLike[str]) -> Path:
    """Finds the adapter folder at a path.

    If a process was killed while it replaced the folder, returns the folder to
    which `replace` had moved it.

    Args:
        folder: Path of an adapter folder or of a run folder.

    Returns:
        `folder`, its subfolder `adapter`, or the folder to which either of them
        was moved. If there is no adapter folder, returns `folder`.
    """
    folder = Path(folder)
    for place in (folder, folder / "adapter"):
        for candidate in (place, _moved_aside(place)):
            # Unlike `Path.is_file`, this accepts paths of any length.
            if os.path.isfile(candidate / CONFIG_FILE):
                return candidate
    return folder


def replace(folder: Path, new: Path) -> None:
    """Replaces an adapter folder with another folder.

    At any time, either the old or the new folder is complete.

    Args:
        folder: Path of an adapter folder. It need not exist.
        new: Path of the folder that replaces it, in the same parent folder.
    """
    aside = _moved_aside(folder)
    if os.path.lexists(folder):
        own_files.remove(aside)
        folder.rename(aside)
    # If the process is killed here, readers find the old folder in `aside`.
    new.rename(folder)
    own_files.remove(aside)


def check_not_working_folder(folder: Path) -> None:
    """Raises an `AdapterError` if a folder to replace is the working folder.

    A process whose working folder is replaced has none afterwards.

    Args:
        folder: Path of the folder, or of a folder around the working folder.
    """
    if folder.exists() and Path.cwd().is_relative_to(folder.resolve()):
        raise AdapterError(
            f"{folder} is the folder in which you work, so it cannot be "
            "replaced. Give another folder, or go to another one first."
        )


def _moved_aside(folder: Path) -> Path:
    # The path `.` has no name, but its absolute path does.
    folder = folder.absolute()
    if not folder.name:
        return folder
    return folder.with_name(f".{folder.name}.replaced")


def read_adapter_config(
    folder: str | Path, parsed: Any = None
) -> dict[str, Any]:
    """Reads and checks the `adapter_config.json` of a folder.

    Args:
        folder: Path of the adapter folder.
        parsed: Parsed content of the file. `None` (default) reads the file.

    Returns:
        Dict with the configuration. Paths of folders that were moved together
        with the adapter are updated.

    Raises:
        AdapterError: If the file is missing, malformed, or has another format
            version.
    """
    path = Path(folder) / CONFIG_FILE
    if not os.path.isfile(path):
        raise AdapterError(
            f"{cut(folder)} is not an adapter folder: it has no {CONFIG_FILE}. "
            "Expected the folder that `save_adapter` wrote, for example "
            "<model_dir>/adapter."
        )
    try:
        config = parsed
        if parsed is None:
            config = parse_json(read_text(path))
        version = check_config(config, FORMAT_VERSION)
    except ValueError as error:
        raise AdapterError(
            f"{path} is damaged, or was not written by this library: {error}. "
            "Copy it again from where it was trained."
        ) from error
    if version != FORMAT_VERSION:
        raise AdapterError(
            f"{path} has format {cut(version)}; this version of tf_adapters "
            f"reads format {FORMAT_VERSION}. Upgrade tf_adapters."
        )
    config.setdefault("details", {})
    resolve_paths(config, Path(folder))
    return config


def checksum(path: str | Path) -> str:
    """Returns the SHA-256 of a file as hexadecimal text."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_weights(
    folder: str | Path, config: dict[str, Any]
) -> dict[str, np.ndarray]:
    """Reads the tensors of an adapter folder.

    Args:
        folder: Path of the adapter folder.
        config: Dict that `read_adapter_config` returned. Its entry
            `weights_sha256` is the checksum of the file with the tensors. Early
            versions did not write this entry. The configuration itself has no
            checksum, because people edit it.

    Returns:
        Dict from each tensor's name to its array.

    Raises:
        AdapterError: If the file is missing, damaged, or not the one that was
            written with the configuration.
    """
    path = Path(folder) / WEIGHTS_FILE
    tensors = read_tensors(path)
    expected = config.get("weights_sha256")
    if expected is not None and checksum(path) != expected:
        raise AdapterError(
            f"{path} is damaged, or belongs to another {CONFIG_FILE}: its "
            "checksum differs. Copy both again from where it was trained. If "
            "you changed it on purpose, remove `weights_sha256` from "
            f"{CONFIG_FILE}."
        )
    return tensors


def read_tensors(path: str | Path) -> dict[str, np.ndarray]:
    """Reads a safetensors file and returns a dict from name to array.

    Raises:
        AdapterError: If the file is missing or damaged.
    """
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise OSError("it is not a file")  # Opening a pipe may block.
        return safetensors.numpy.load_file(path)
    except FileNotFoundError as error:
        raise AdapterError(
            f"{path} is missing: the adapter folder is incomplete."
        ) from error
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise AdapterError(
            f"{path} cannot be read: it is truncated or damaged "
            f"({cut(error)}). Copy it again from where it was trained."
        ) from error


def assign_tensors(
    variables: "dict[str, keras.Variable]",
    tensors: dict[str, np.ndarray],
    path: str | Path,
) -> None:
    """Assigns to each variable the tensor of the same name.

    Args:
        variables: Dict from name to Keras variable.
        tensors: Dict from name to array.
        path: Source of the tensors, for the error message.

    Raises:
        AdapterError: See `check_tensors`. In this case, no variable is changed.
    """
    check_tensors(variables, tensors, path)
    for name, variable in variables.items():
        variable.assign(tensors[name])


def check_tensors(
    variables: "dict[str, keras.Variable]",
    tensors: dict[str, np.ndarray],
    path: str | Path,
) -> None:
    """Checks that each variable can be assigned the tensor of the same name.

    Args:
        variables: Dict from name to Keras variable.
        tensors: Dict from name to array.
        path: Source of the tensors, for the error message.

    Raises:
        AdapterError: If a tensor is missing, unexpected, misshaped or not
            finite.
    """
    missing = sorted(set(variables) - set(tensors))
    unexpected = sorted(set(tensors) - set(variables))
    if missing or unexpected:
        raise AdapterError(
            f"{path} does not fit the model. Missing: {some(missing)}. "
            f"Unexpected: {some(unexpected)}."
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


def check_finite(tensors: dict[str, np.ndarray]) -> None:
    """Checks, before tensors are saved, that all their values are finite.

    Args:
        tensors: Dict from name to array.

    Raises:
        AdapterError: If a value is not finite. The message names the weight.
    """
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise AdapterError(
                f"Weight `{name}` has values that are not finite, so nothing "
                "was saved: the training went wrong. Train again with a lower "
                "learning rate, and look at the labels."
            )
