"""The run folder: the one place that a run writes to."""

import json
from pathlib import Path
import shutil
import subprocess
import time

import tensorflow as tf

from tf_adapters import artifacts
from tf_adapters import config as config_lib


class RunFolder:
    """Writes `config.yaml`, `metrics.jsonl`, TensorBoard events, `adapter/`
    and `result.json` of one run.

    Args:
        folder: Path; created with its parents.
        config: `Config`, saved at once.
    """

    def __init__(self, folder, config):
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._remove_earlier_run()
            config_lib.save(config, self.folder / "config.yaml")
            (self.folder / "metrics.jsonl").write_text("", encoding="utf-8")
        except OSError as error:
            raise config_lib.ConfigError(
                f"Cannot write to --model_dir={folder}: {error.strerror}. Give "
                "a folder that you may write to."
            ) from error
        self._events = tf.summary.create_file_writer(
            str(self.folder / "tensorboard")
        )

    def _remove_earlier_run(self):
        """Removes what an earlier run left, so that two never mix."""
        (self.folder / "result.json").unlink(missing_ok=True)
        for name in ("adapter", "tensorboard"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    @property
    def adapter_folder(self):
        """Where the best adapter is saved."""
        return self.folder / "adapter"

    def log(self, record):
        """Appends a dict to `metrics.jsonl` and its numbers to TensorBoard."""
        with (self.folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({"time": time.time(), **record}) + "\n")
        with self._events.as_default(step=record["step"]):
            for name, value in _numbers(record):
                tf.summary.scalar(name, value)
        self._events.flush()

    def save_text(self, name, text):
        """Writes a small text file."""
        (self.folder / name).write_text(text + "\n", encoding="utf-8")

    def save_adapter(self, model, details):
        """Saves the adapter folder; returns its weights' size in bytes."""
        return artifacts.save_adapter(model, self.adapter_folder, details)

    def save_result(self, result):
        """Writes `result.json`, the mark of a finished run, at one stroke."""
        partial = self.folder / ".result.json.partial"
        partial.write_text(json.dumps(result, indent=2) + "\n")
        partial.rename(self.folder / "result.json")


def _numbers(record, prefix=""):
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{prefix}{name}/")
        elif name not in ("step", "time"):
            yield f"{prefix}{name}", value


def read_result(folder):
    """Returns `result.json` of a run folder, or `None` if it is unfinished."""
    path = Path(folder) / "result.json"
    return json.loads(path.read_text()) if path.exists() else None


def provenance():
    """Returns the versions, the commit and the device that make a result."""
    import keras
    import keras_hub

    import tf_adapters

    devices = tf.config.list_physical_devices("GPU")
    return {
        "versions": {
            "tf_adapters": tf_adapters.__version__,
            "tensorflow": tf.__version__,
            "keras": keras.__version__,
            "keras_hub": keras_hub.__version__,
        },
        "commit": _commit(),
        "device": devices[0].name if devices else "CPU",
    }


def _commit():
    """Returns the commit of this source, `+changes` if the tree differs."""
    command = ["git", "-C", str(Path(__file__).parent)]
    try:
        head, status = (
            subprocess.run(
                [*command, *arguments],
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            ).stdout.strip()
            for arguments in (
                ["rev-parse", "--short", "HEAD"],
                ["status", "--porcelain", "--untracked-files=no"],
            )
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return head + ("+changes" if status else "")
