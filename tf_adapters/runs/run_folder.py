"""The run folder: the folder that a run writes all its files to."""

from __future__ import annotations

from collections.abc import Iterable
import contextlib
from pathlib import Path
import shutil
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import own_files
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.common.text_files import replace_text
from tf_adapters.config import resolve
from tf_adapters.models import saving
from tf_adapters.runs import checkpoints
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import folder_lock
from tf_adapters.runs import left_files
from tf_adapters.runs import predictions
from tf_adapters.runs import remote_folder
from tf_adapters.runs import run_files
from tf_adapters.runs import run_log

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.heads.head import Head
    from tf_adapters.models.adapter_model import AdapterModel


class RunFolder:
    """Writes the files of one run, and locks its folder.

    The files are `config.yaml`, `metrics.jsonl`, TensorBoard events,
    checkpoints, `adapter/`, `predictions/` and `result.json`.

    A folder belongs to one run, and to one process at a time. Creating this
    object resumes an unfinished run with the same configuration, or removes an
    earlier run if that is allowed. Check a run's settings and data before.

    Args:
        folder: Path of the folder. Created with its parents if it does not
            exist.
        config: `Config`, saved immediately.
        data_fingerprint: Dict from split to the fingerprint of its rows.
        overwrite: Whether to first remove a run in the folder, even one with
            the same configuration. But if that run was itself started with
            `overwrite` and then stopped, it is resumed. Default: `False`.
        declared: `Config` that the user asked for, if `config` was derived from
            it, for example by training the members of a fusion first. It
            identifies the run. Default: `config`.
        frozen: Value of `frozen_weights` for the model.

    Attributes:
        checkpoint: The newest `Checkpoint` of this run, or `None`.

    Raises:
        ConfigError: If the folder cannot be written to or is in use. Also if
            it holds the encoder or an adapter that the run starts from, a
            finished run with this configuration, or a run with another
            configuration, other data or other frozen weights.
    """

    def __init__(
        self,
        folder: Path,
        config: Config,
        data_fingerprint: dict[str, Any],
        overwrite: bool = False,
        declared: Config | None = None,
        frozen: Any = (),
    ) -> None:
        self.folder = Path(folder)
        self.data_fingerprint = data_fingerprint
        self.overwrite = overwrite
        self.frozen = frozen
        self._check_sources(config)
        left_files.check_folders(self.folder, config.method.tasks)
        try:
            started = left_files.was_started(self.folder)
            is_new_lock = not (self.folder / folder_lock.LOCK).exists()
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = folder_lock.lock_folder(self.folder)
            with contextlib.ExitStack() as on_error:
                on_error.callback(self.close)
                self._check_is_a_runs(started, is_new_lock)
                self._open(config, declared or config)
                on_error.pop_all()
        except OSError as error:
            raise ConfigError(
                f"Cannot write to --model_dir={cut(folder)}: "
                f"{error.strerror}. Give a folder that you may write to."
            ) from error

    def _check_is_a_runs(self, started: bool, is_new_lock: bool) -> None:
        try:
            left_files.check_is_a_runs(self.folder, started)
        except ConfigError:
            if is_new_lock:
                # With it, the folder would look like a run's next time.
                (self.folder / folder_lock.LOCK).unlink(missing_ok=True)
            raise

    def _open(self, config: Config, declared: Any) -> None:
        """Resumes or removes the run in the folder, and opens the log."""
        self.checkpoint = earlier_runs.find_checkpoint(
            *(self.folder, declared, self.data_fingerprint),
            *(self.frozen, self.overwrite),
        )
        if self.checkpoint is None:
            left_files.remove_run(self.folder)
            data = config.data
            tables = (data.file, data.validation_file, data.test_file)
            left_files.remove_tables(self.folder, tables)
            # If the folder has an address such as `gs://bucket/run`, remove
            # the earlier run there too, before this run writes anything.
            remote_folder.copy_to_address(self.folder)
        left_files.remove_rests(self.folder)
        self._save_configs(config, declared)
        kept = 0
        if self.checkpoint is not None:
            kept = self.checkpoint.state["log_lines"]
        self._log = run_log.RunLog(self.folder, kept)

    def _save_configs(self, config: Config, declared: Any) -> None:
        # Written first and never removed: it identifies the run.
        if declared != config:
            resolve.save_config(declared, self.folder / earlier_runs.DECLARED)
        else:
            (self.folder / earlier_runs.DECLARED).unlink(missing_ok=True)
        resolve.save_config(config, self.folder / "config.yaml")

    @property
    def _checkpoints(self) -> Any:
        return self.folder / earlier_runs.CHECKPOINTS

    def _check_sources(self, config: Config) -> None:
        """Raises an error if the run would overwrite its initial weights."""
        names = ("", *left_files.ADAPTERS)
        written = {(self.folder / name).resolve() for name in names}
        sources = [("adapter", config.init_adapter)]
        if config.encoder != "minilm":  # This name never means a folder.
            sources.append(("encoder", config.encoder))
        members = (*config.method.adapters, config.stack_on)
        sources += [("adapter", member) for member in members]
        snapshots = (self.folder / left_files.SNAPSHOTS).resolve()
        for kind, path in sources:
            place = Path(path or "").resolve()
            if path and (place in written or snapshots in place.parents):
                raise ConfigError(
                    f"--model_dir={self.folder} holds the {kind} that the run "
                    f"starts from, {path}, and would overwrite it. Give "
                    "another folder."
                )

    @property
    def adapter_folder(self) -> Any:
        """Path of the folder with the best adapter."""
        return self.folder / "adapter"

    @property
    def restored(self) -> Any:
        """Log records from before the checkpoint that the run resumes from."""
        return self._log.restored

    def log(self, record: dict[str, Any]) -> None:
        """Appends a record, a dict with a `step`, to the log; see `RunLog`."""
        self._log.append(record)

    def save_tables(self, paths: Iterable[Any]) -> None:
        """Moves the files that hold in-memory tables to the folder `tables`."""
        for path in map(Path, paths):
            folder = own_files.make_folder(self.folder, resolve.TABLES)
            own_files.remove_link(folder / path.name)
            shutil.move(path, folder / path.name)

    def save_text(self, name: str, text: str) -> None:
        """Writes `text` to the file `name` in the run folder."""
        replace_text(self.folder / name, text + "\n")

    def save_adapter(self, model: Any, details: dict[str, Any]) -> int | None:
        """Saves the model's adapter; returns its size in bytes."""
        size = saving.save_adapter(
            model, self.adapter_folder, details, overwrite=True
        )
        remote_folder.copy_to_address(self.folder)
        return size

    def save_snapshot(
        self, model: Any, step: int, details: dict[str, Any]
    ) -> None:
        """Saves the adapter's weights after a step to `snapshots/<step>`."""
        folder = self.folder / left_files.SNAPSHOTS / str(step)
        saving.save_adapter(
            model, folder, {**details, "step": step}, overwrite=True
        )
        remote_folder.copy_to_address(self.folder)

    def save_predictions(
        self, split: str, head: Head, compared: dict[str, Any]
    ) -> None:
        """Writes the predictions for a split, if there are any.

        Args:
            split: Name of the split.
            head: `Head`.
            compared: Dict that the head's `compare` returned. If it is empty,
                nothing is written.
        """
        if compared:
            predictions.save_predictions(self.folder, split, head, compared)

    def save_checkpoint(
        self, step: int, tensors: dict[str, Any], state: dict[str, Any]
    ) -> None:
        """Writes a checkpoint to resume the run from.

        Args:
            step: Number of finished training steps.
            tensors: Dict from name to array.
            state: Dict of values that can be stored as JSON.
        """
        state = {
            **state,
            "log_lines": self._log.lines,
            "data_fingerprint": self.data_fingerprint,
            "frozen": self.frozen,
            "overwrites": self.overwrite and state.get("stopped", False),
        }
        # The checkpoint counts on these lines.
        self._log.sync()
        checkpoint = checkpoints.Checkpoint(step, tensors, state)
        checkpoints.save_checkpoint(self._checkpoints, checkpoint)
        remote_folder.copy_to_address(self.folder)

    def save_result(self, result: dict[str, Any]) -> None:
        """Writes `result.json`, which marks the run as finished.

        Then removes the checkpoints and releases the folder's lock.
        """
        run_files.write_result(self.folder / "result.json", result)
        shutil.rmtree(self._checkpoints, ignore_errors=True)
        remote_folder.copy_to_address(self.folder)
        self.close()

    def close(self) -> None:
        """Releases the lock, so that another process may use the folder."""
        self._lock.release()


def frozen_weights(model: AdapterModel) -> list[Any]:
    """Returns names and fingerprints of the weights that a model starts from.

    Args:
        model: `AdapterModel`.

    Returns:
        List of pairs of a name and a fingerprint: one for the encoder, and one
        for each member of a fusion.
    """
    encoder = model.encoder_info
    return [
        [f"encoder `{encoder.name}`", encoder.fingerprint],
        *([f"`{m.folder}`", m.fingerprint] for m in model.members),
    ]
