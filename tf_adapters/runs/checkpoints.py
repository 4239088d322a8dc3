"""Checkpoints of a run, written atomically and verified when they are read.

`<folder>/<step>/` holds `tensors.safetensors` and `state.json`. `state.json` is
written last, by a rename. It holds a hash of the tensors and a hash of its own
content. If it is missing, the run was stopped while it wrote the checkpoint. If
a hash differs, the checkpoint was damaged later. Either way, the checkpoint is
skipped.
"""

import dataclasses
import hashlib
import json
import logging
import os
from pathlib import Path
import shutil
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from tf_adapters.common import own_files
from tf_adapters.common.errors import UserError
from tf_adapters.common.text_files import check_file
from tf_adapters.common.text_files import hash_of_json
from tf_adapters.common.text_files import read_file
from tf_adapters.common.text_files import read_json

_KEPT = 2
# In bytes. A run that trains the whole encoder stores gigabytes.
_LARGEST = 1 << 40
_TENSORS = "tensors.safetensors"
_STATE = "state.json"
_KEYS, _OWN_HASH = {"step", "sha256", "state"}, "state_sha256"
_ALL_KEYS = {*_KEYS, _OWN_HASH}
_LOGGER = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """The weights and values that a run needs to resume.

    Attributes:
        step: Number of finished training steps.
        tensors: Dict from name to array.
        state: Dict of values that can be stored as JSON.
    """

    step: int
    tensors: dict[str, np.ndarray]
    state: dict[str, Any]


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Writes a checkpoint and removes older ones.

    The new checkpoint and the newest complete one before it are kept.

    Args:
        folder: Path of the folder with the run's checkpoints. Created with its
            parents if it does not exist.
        checkpoint: `Checkpoint`.
    """
    folder = Path(folder)
    path = folder / f"{checkpoint.step:08d}"
    own_files.make_new_folder(path)
    try:
        _write_files(path, checkpoint)
    except OSError:
        # The disk may be full, and a partial checkpoint is of no use.
        shutil.rmtree(path, ignore_errors=True)
        raise
    for old in set(_folders(folder)) - set(_kept(folder, checkpoint.step)):
        shutil.rmtree(old, ignore_errors=True)


def _kept(folder: Path, step: int) -> list[Any]:
    """Returns the folders of the two newest complete checkpoints up to a step.

    Checkpoints of later steps are excluded: they were incomplete or damaged, so
    the run resumed from an earlier step.
    """
    whole = [p for p in _folders(folder) if (p / _STATE).exists()]
    return [p for p in whole if int(p.name) <= step][:_KEPT]


def _write_files(path: Path, checkpoint: Any) -> None:
    content = safetensors.numpy.save(checkpoint.tensors)
    _write(path / _TENSORS, content)
    state = {
        "step": checkpoint.step,
        "sha256": hashlib.sha256(content).hexdigest(),
        "state": checkpoint.state,
    }
    state |= {_OWN_HASH: hash_of_json(state)}
    partial = path / f".{_STATE}.partial"
    _write(partial, json.dumps(state).encode())
    partial.rename(path / _STATE)
    _sync_folder(path)


def _write(path: Path, content: Any) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        # Otherwise a power failure may leave a file without its content.
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    if os.name == "nt":  # Windows cannot open a folder.
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _folders(folder: Path) -> list[Any]:
    """Returns the folders of all checkpoints in `folder`, newest first."""
    if not Path(folder).is_dir():
        return []
    found = [p for p in Path(folder).iterdir() if p.name.isdecimal()]
    return sorted(found, key=lambda path: int(path.name), reverse=True)


def newest_checkpoint(
    folder: Path, needs: dict[str, Any] | None = None
) -> "Checkpoint | None":
    """Returns the newest complete `Checkpoint` of a run, or `None`.

    If a checkpoint is incomplete or damaged, logs a warning and tries the
    checkpoint before it.

    Args:
        folder: Path of the folder with the run's checkpoints.
        needs: Dict of the values that `Checkpoint.state` must have, from name
            to type. Default: no value is required.
    """
    for path in _folders(folder):
        try:
            return _read(path, needs or {})
        except (OSError, ValueError, RecursionError) as error:
            _LOGGER.warning(
                "Checkpoint %s is incomplete or damaged (%s); using the one "
                "before it.",
                path,
                error,
            )
    return None


def _read(path: Path, needs: Any) -> "Checkpoint":
    state = read_json(path / _STATE)
    _check_state(state, int(path.name), needs)
    _check_tensors(path / _TENSORS)
    content = read_file(path / _TENSORS, _LARGEST)
    if hashlib.sha256(content).hexdigest() != state["sha256"]:
        raise UserError(f"{_TENSORS} has changed since it was written")
    try:
        tensors = safetensors.numpy.load(content)
    except safetensors.SafetensorError as error:
        raise UserError(str(error)) from error
    return Checkpoint(state["step"], tensors, state["state"])


def _check_tensors(path: Path) -> None:
    """Raises an error if a file of tensors has another size than its header.

    Otherwise a damaged file could be larger than the memory.
    """
    check_file(path, _LARGEST)
    try:
        with safetensors.safe_open(path, "numpy"):
            pass
    except safetensors.SafetensorError as error:
        raise UserError(str(error)) from error


def _check_state(state: dict[str, Any], step: int, needs: Any) -> None:
    """Raises an error if a `state.json` is incomplete or was changed.

    The hash of the content of `state.json` may be missing, because version
    0.1.0 did not store it.
    """
    if not isinstance(state, dict) or not _KEYS <= state.keys() <= _ALL_KEYS:
        raise UserError(f"{_STATE} does not have the values {sorted(_KEYS)}")
    if _OWN_HASH in state and state.pop(_OWN_HASH) != hash_of_json(state):
        raise UserError(f"{_STATE} has changed since it was written")
    if type(state["step"]) is not int or state["step"] != step:
        raise UserError(f"{_STATE} belongs to another step than its folder")
    if not isinstance(state["state"], dict):
        raise UserError(f"{_STATE}: the state of the run is not a mapping")
    for name, kind in needs.items():
        if not isinstance(state["state"].get(name), kind):
            raise UserError(f"{_STATE}: the state of the run lacks `{name}`")
