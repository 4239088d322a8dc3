"""A run's log: records in a JSONL file, and their numbers for TensorBoard."""

from collections.abc import Iterator
import json
import os
from pathlib import Path
import time
from typing import Any

import numpy as np

from tf_adapters.common import own_files
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.common.text_files import replace_text
from tf_adapters.runs import run_files

# The folder of the TensorBoard events.
EVENTS = "tensorboard"


class RunLog:
    """Appends records to `metrics.jsonl` and writes them as TensorBoard events.

    Args:
        folder: Path of the run folder.
        kept: Number of existing records to keep. These are the records that an
            earlier process wrote before its checkpoint. Default: 0.

    Attributes:
        restored: List of the kept records.
        lines: Number of records in the file.
    """

    def __init__(self, folder: Path, kept: int = 0) -> None:
        self._path = Path(folder) / "metrics.jsonl"
        self.restored = _read(self._path, kept) if kept else []
        lines = (json.dumps(record) + "\n" for record in self.restored)
        replace_text(self._path, "".join(lines))
        self.lines = kept
        # Write the events again from scratch. Otherwise events that a stopped
        # run logged after its checkpoint would appear twice.
        events = Path(folder) / EVENTS
        own_files.remove(events)
        own_files.make_folder(folder, EVENTS)
        # Imported here: studies read the name of the folder without TensorFlow.
        import tensorflow as tf

        self._events = tf.summary.create_file_writer(str(events))
        for record in self.restored:
            self._write_events(record)

    def append(self, record: dict[str, Any]) -> None:
        """Logs a record together with the current time.

        A record is a dict that has the key `step`.
        """
        with own_files.open_to_append(self._path) as file:
            file.write(json.dumps({"time": time.time(), **record}) + "\n")
        self.lines += 1
        self._write_events(record)

    def sync(self) -> None:
        """Writes the log to the disk, so that it survives a power failure."""
        if self._path.exists():
            # Windows syncs only files that are open for writing.
            with self._path.open("r+b") as file:
                os.fsync(file.fileno())

    def _write_events(self, record: dict[str, Any]) -> None:
        import tensorflow as tf

        with self._events.as_default(step=record["step"]):
            for name, value in _numbers(record):
                tf.summary.scalar(name, _as_float32(value))
        self._events.flush()


def _read(path: Path, kept: Any) -> list[Any]:
    """Returns the first `kept` records in the log of a run that is resumed.

    Raises a `ConfigError` if the log is damaged or has fewer records.
    """
    try:
        records = run_files.read_records(path, kept)
        if len(records) < kept:
            raise UserError(f"{path} has {len(records)} of {kept} records.")
    except UserError as error:
        raise ConfigError(
            f"{error} Restore it to resume the run, or give --overwrite to "
            "start again."
        ) from error
    return records


def _as_float32(value: float) -> np.ndarray:
    """Returns a number as TensorBoard stores it; large numbers are infinite."""
    with np.errstate(over="ignore"):
        return np.array(value, "float32")


def _numbers(record: dict[str, Any], prefix: str = "") -> Iterator[Any]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{prefix}{name}/")
        # A search logs its choices, which may be strings or `None`.
        elif name not in ("step", "time") and not isinstance(value, str | None):
            yield f"{prefix}{name}", value
