"""The run folders of tasks that train together."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.config import task as config_task
from tf_adapters.data.rows.splits import EVALUATED
from tf_adapters.runs import remote_folder
from tf_adapters.runs import run_facts
from tf_adapters.runs import run_folder_of_workers
from tf_adapters.runs.run_folder import frozen_weights
from tf_adapters.training import workers
from tf_adapters.training.multitask_trainer import of_task

if TYPE_CHECKING:
    import os

    import tensorflow as tf

    from tf_adapters.config.settings import Config
    from tf_adapters.models.multitask_model import MultiTaskModel


class MultitaskFolders:
    """The folder of a multitask run, which contains a run folder for each task.

    Args:
        strategy: `tf.distribute.Strategy`.
        model_dir: Path of the whole run's folder.
        config: `Config`.
        model: `MultiTaskModel`.
        fingerprints: Dict from task to the fingerprint of its data.
        overwrite: See `RunFolder`.
    """

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        model_dir: str | os.PathLike[str],
        config: Config,
        model: MultiTaskModel,
        fingerprints: dict[str, Any],
        overwrite: bool,
    ) -> None:
        self.strategy = strategy
        self.model = model
        self.config = config
        self.fingerprints = fingerprints
        self._opened = contextlib.ExitStack()
        self.whole = self._open_run(
            model_dir,
            config,
            fingerprints,
            overwrite,
            frozen=frozen_weights(next(iter(model.models.values()))),
        )
        self.encoder_folder = Path(model_dir).absolute() / "encoder"
        encoder = config.encoder
        if config.method.train_encoder:
            encoder = str(self.encoder_folder)
        # The run folder of a task describes an adapter on the jointly trained
        # encoder.
        self.configs = {
            name: dataclasses.replace(
                own, encoder=encoder, method=config.method.adapter
            )
            for name, own in config_task.by_task(config).items()
        }
        self.tasks = {
            name: self._open_run(
                self.whole.folder / name, own, fingerprints[name], overwrite
            )
            for name, own in self.configs.items()
        }
        for record in self.whole.restored:
            self._log_to_tasks(record)
        run_facts.print_weights(model, self.whole)

    def _open_run(self, *arguments: Any, **options: Any) -> Any:
        """Opens a run folder with `open_run`, and returns its return value.

        The arguments are those of `open_run` without the strategy. If opening
        fails, releases the folders that were opened before.
        """
        try:
            run = run_folder_of_workers.open_run(
                self.strategy, *arguments, **options
            )
        except BaseException:
            self.close()
            raise
        self._opened.callback(run.close)
        return run

    def close(self) -> None:
        """Releases all folders, so that another process may use them."""
        self._opened.close()

    def log(self, record: dict[str, Any]) -> None:
        """Logs a record of the whole run.

        If the record has validation metrics, each task's own metrics are also
        logged in the task's run folder.
        """
        self.whole.log(record)
        self._log_to_tasks(record)

    def _log_to_tasks(self, record: dict[str, Any]) -> None:
        for name, folder in self.tasks.items():
            if "validation" in record:
                own = {"validation": of_task(record["validation"], name)}
                folder.log({**record, **own})

    def save_best(self, values: dict[str, Any]) -> None:
        """Saves the encoder, if it is trained, and the adapter of each task.

        Args:
            values: Dict from `<task>/<metric>` to the validation metric.
        """
        if not workers.is_chief(self.strategy):
            return
        details = {"tasks": ", ".join(self.tasks)}
        encoder = None
        if self.config.method.train_encoder:
            encoder = self.model.save_encoder(self.encoder_folder, details)
        for name, folder in self.tasks.items():
            self.model.save_adapter(
                name,
                folder.adapter_folder,
                encoder,
                {
                    "task": name,
                    "text_fields": self._text_fields(name),
                    "max_length": self.config.data.max_length,
                    "validation": of_task(values, name),
                },
            )
        remote_folder.copy_to_address(self.whole.folder)

    def _text_fields(self, name: str) -> list[str]:
        task = config_task.declared_task(self.configs[name], check_files=False)
        return list(task.text_fields)

    def save_results(
        self, outcome: Any, results: Any, seconds: float
    ) -> dict[Any, Any]:
        """Writes a `result.json` for each task and for the whole run.

        Args:
            outcome: Dict that `Loop.run` returned.
            results: Dict from task to the content of its `result.json`.
            seconds: Duration of the whole run.

        Returns:
            The content of the whole run's `result.json`. Its entry `tasks` is a
            dict from task to a dict from split to metrics.
        """
        for name, result in results.items():
            self.tasks[name].save_result(result)
        whole = {
            **run_facts.facts(self.config, self.model),
            **outcome,
            "training_seconds": outcome["seconds"],
            "data_fingerprint": {
                name: result["data_fingerprint"]
                for name, result in results.items()
            },
            "tasks": {
                name: {
                    split: result[split]
                    for split in EVALUATED
                    if split in result
                }
                for name, result in results.items()
            },
            "seconds": round(seconds, 1),
        }
        self.whole.save_result(whole)
        workers.wait_for_all(self.strategy)
        return whole
