"""The run folder: the one place that a run writes to."""

import fcntl
import json
from pathlib import Path
import shutil
import subprocess
import time

import tensorflow as tf

from tf_adapters import artifacts
from tf_adapters import config as config_lib
from tf_adapters import remote
from tf_adapters import settings
from tf_adapters.plain_files import replace_text
from tf_adapters.training import checkpoints

# What was asked for, where the run's own config.yaml says more.
_DECLARED = "declared.yaml"
# Where data and TPU are makes no other run; the data's fingerprints do.
_ELSEWHERE = {"data.data_dir", "data.cache_dir", "data.service", "tpu"}
# Its lock is held by the process that trains in the folder.
LOCK = ".lock"


class RunFolder:
    """Writes `config.yaml`, `metrics.jsonl`, TensorBoard events, checkpoints,
    `adapter/` and `result.json` of one run.

    A folder is one run's: what an unfinished run of the same configuration
    left is gone on from. Only one process at a time may have it.

    Args:
        folder: Path; created with its parents.
        config: `Config`, saved at once.
        data_fingerprint: Dict from split to what identifies its rows.
        overwrite: Whether to remove another run, or this one, first.
        declared: `Config` that was asked for, where `config` is what became
            of it (a fusion whose members were trained first, say); the run is
            known by it. Default: `config`.

    Attributes:
        checkpoint: The newest `Checkpoint` of this run, or `None`.
        restored: List of the records that were logged until then.

    Raises:
        ConfigError: If the folder cannot be written to, is in use, or holds
            the run of another configuration or of other data that trained.
    """

    def __init__(
        self, folder, config, data_fingerprint, overwrite=False, declared=None
    ):
        self.folder = Path(folder)
        self.data_fingerprint = data_fingerprint
        self._check_encoder(config.encoder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(self.folder)
            if not overwrite:
                _check_config(self.folder, declared or config)
            self.checkpoint = None
            if not overwrite:
                self.checkpoint = self._newest_checkpoint()
            if self.checkpoint is None:
                self._remove_earlier_run()
            self._save_configs(config, declared or config)
            self._restore_log()
        except OSError as error:
            raise config_lib.ConfigError(
                f"Cannot write to --model_dir={folder}: {error.strerror}. Give "
                "a folder that you may write to."
            ) from error

    def _save_configs(self, config, declared):
        config_lib.save(config, self.folder / "config.yaml")
        (self.folder / _DECLARED).unlink(missing_ok=True)
        if declared != config:
            config_lib.save(declared, self.folder / _DECLARED)

    @property
    def _checkpoints(self):
        return self.folder / "checkpoints"

    def _newest_checkpoint(self):
        checkpoint = checkpoints.newest(self._checkpoints)
        if checkpoint is None:
            return None
        if checkpoint.state["data_fingerprint"] != self.data_fingerprint:
            raise config_lib.ConfigError(
                f"{self.folder} holds a run that was stopped after step "
                f"{checkpoint.step}, and the data have changed since. Bring "
                "them back to go on, or give --overwrite to start again."
            )
        return checkpoint

    def _check_encoder(self, encoder):
        """Refuses to overwrite the encoder that a run starts from."""
        written = {self.folder, self.folder / "adapter"}
        written.add(self.folder / "encoder")
        if Path(encoder).resolve() in {path.resolve() for path in written}:
            raise config_lib.ConfigError(
                f"--model_dir={self.folder} holds the encoder that the run "
                f"starts from, {encoder}, and would overwrite it. Give another "
                "folder."
            )

    def _remove_earlier_run(self):
        """Removes what an earlier run left, so that two never mix."""
        for name in ("result.json", "error.txt"):
            (self.folder / name).unlink(missing_ok=True)
        for name in ("adapter", "encoder", "checkpoints"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def _restore_log(self):
        """Takes metrics and events back to where the checkpoint was written."""
        path = self.folder / "metrics.jsonl"
        lines = []
        if self.checkpoint is not None:
            lines = path.read_text(encoding="utf-8").splitlines()
            lines = lines[: self.checkpoint.state["log_lines"]]
        replace_text(path, "".join(f"{line}\n" for line in lines))
        self.log_lines = len(lines)
        # Events are written anew: what a stopped run logged after its
        # checkpoint would else be there twice.
        shutil.rmtree(self.folder / "tensorboard", ignore_errors=True)
        self._events = tf.summary.create_file_writer(
            str(self.folder / "tensorboard")
        )
        self.restored = [json.loads(line) for line in lines]
        for record in self.restored:
            self._write_events(record)

    @property
    def adapter_folder(self):
        """Where the best adapter is saved."""
        return self.folder / "adapter"

    def log(self, record):
        """Appends a dict to `metrics.jsonl` and its numbers to TensorBoard."""
        with (self.folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({"time": time.time(), **record}) + "\n")
        self.log_lines += 1
        self._write_events(record)

    def _write_events(self, record):
        with self._events.as_default(step=record["step"]):
            for name, value in _numbers(record):
                tf.summary.scalar(name, value)
        self._events.flush()

    def save_text(self, name, text):
        """Writes a small text file."""
        (self.folder / name).write_text(text + "\n", encoding="utf-8")

    def save_adapter(self, model, details):
        """Saves the adapter folder; returns its weights' size in bytes."""
        size = artifacts.save_adapter(model, self.adapter_folder, details)
        remote.push(self.folder)
        return size

    def save_checkpoint(self, step, tensors, state):
        """Writes what a run needs to go on from here."""
        state = {
            **state,
            "log_lines": self.log_lines,
            "data_fingerprint": self.data_fingerprint,
        }
        checkpoint = checkpoints.Checkpoint(step, tensors, state)
        checkpoints.save(self._checkpoints, checkpoint)
        remote.push(self.folder)

    def save_result(self, result):
        """Writes `result.json`, the mark of a finished run, at one stroke.

        A finished run needs no checkpoints.
        """
        text = json.dumps(result, indent=2) + "\n"
        replace_text(self.folder / "result.json", text)
        shutil.rmtree(self._checkpoints, ignore_errors=True)
        remote.push(self.folder)
        self._lock.close()


def _lock(folder):
    """Returns an open file that is this process's while it lives."""
    file = (folder / LOCK).open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise config_lib.ConfigError(
            f"Another process is training in {folder}. Wait for it, stop it, "
            "or give another --model_dir."
        ) from error
    return file


def _differences(folder, config):
    """Returns a line for each setting in which a folder's run is another."""
    theirs = declared_config(folder)
    if theirs is None:
        return []
    theirs, ours = _flat(theirs), _flat(config)
    return [
        f"  {key}: {theirs.get(key)!r} there, {ours.get(key)!r} now"
        for key in sorted({*theirs, *ours} - _ELSEWHERE)
        if theirs.get(key) != ours.get(key)
    ]


def declared_config(folder):
    """Returns the `Config` that a folder's run was asked for, or `None`."""
    for name in (_DECLARED, "config.yaml"):
        if (Path(folder) / name).exists():
            return config_lib.load(Path(folder) / name)
    return None


def finished(folder, config, data_fingerprint):
    """Returns the result of a configuration's finished run, or `None`.

    Raises:
        ConfigError: If it is finished, but the data were others.
    """
    if declared_config(folder) is None or _differences(folder, config):
        return None
    result = read_result(folder)
    if result is not None and result["data_fingerprint"] != data_fingerprint:
        raise config_lib.ConfigError(
            f"{folder} holds this run, finished, on other data. Give another "
            "--model_dir, or --overwrite to train again."
        )
    return result


def _check_config(folder, config):
    differences = _differences(folder, config)
    if differences and _has_work(folder):
        raise config_lib.ConfigError(
            f"{folder} holds a run of another configuration:\n"
            + "\n".join(differences)
            + "\nGive another --model_dir, or --overwrite to remove that run."
        )


def _has_work(folder):
    """Whether a run came far enough to lose something.

    One that ended at a wrong setting, before its first step, did not.
    """
    log = folder / "metrics.jsonl"
    return (log.exists() and log.stat().st_size > 0) or any(
        (folder / name).exists()
        for name in ("result.json", "adapter", "checkpoints")
    )


def _flat(config):
    return settings.flatten(config_lib.to_dict(config))


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
