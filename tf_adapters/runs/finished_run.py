"""Loads a finished run, to evaluate it, to predict, or to export it."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.config import resolve
from tf_adapters.config import task as config_task
from tf_adapters.data.rows import sampling
from tf_adapters.data.rows import splits
from tf_adapters.data.rows import zero_shot_transfer
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import predictions
from tf_adapters.runs import pretraining_task
from tf_adapters.runs import task_data
from tf_adapters.runs.experiment import Experiment

if TYPE_CHECKING:
    import os

    from tf_adapters.config.settings import Config
    from tf_adapters.tasks.task import Task


_LOGGER = logging.getLogger(__name__)


def load_finished_run(
    config: Config, task: Task, model_dir: str | os.PathLike[str]
) -> Experiment:
    """Returns an `Experiment` with a finished run's adapter.

    Args:
        config: `Config` of the run.
        task: `Task` that the configuration names. For a pretraining run, the
            task of predicting masked tokens is used instead.
        model_dir: Path of the run folder.

    Raises:
        ConfigError: If the run is a baseline without an encoder.
    """
    if config.method.own_training() is not None:
        raise ConfigError(
            f"{model_dir} holds a baseline without an encoder. Its metrics are "
            "in result.json, and `keras.saving.load_model` loads its "
            "model.keras; it cannot be used in other ways here."
        )
    task = pretraining_task.task_of_run(task, model_dir)
    return Experiment(config, task, Path(model_dir) / "adapter")


def load_to_export(
    config: Config, model_dir: str | os.PathLike[str]
) -> Experiment:
    """Loads a run for export. Returns an `Experiment`.

    The run's data are not read: the class names come from the adapter. The
    model is on one device.

    Args:
        config: `Config` of the run.
        model_dir: Path of the run folder.
    """
    config = dataclasses.replace(config, distribution_strategy="one_device")
    return load_finished_run(
        config, config_task.declared_task(config), model_dir
    )


def evaluate_run(
    config: Config, model_dir: str | os.PathLike[str]
) -> dict[Any, Any]:
    """Evaluates a run's adapter on the validation and test splits.

    If the run was trained with these settings and data, and its folder lacks
    some of the predictions, stores the missing predictions there.

    Args:
        config: `Config`.
        model_dir: Path of the run folder.

    Returns:
        Dict from split to a dict of metrics. If `data.eval_languages` is set,
        the only key is `"transfer"`, with the summary over these languages.
    """
    task = task_data.get_task(config)
    languages = zero_shot_transfer.load_languages(task, config.data)
    rows = {}
    if not languages:
        rows = splits.load_rows(task, config.data, config.seed)
    experiment = load_finished_run(config, task, model_dir)
    if languages:
        return {"transfer": experiment.transfer(languages)}
    metrics, is_own = {}, _is_own(config, model_dir, rows)
    for split in [name for name in splits.EVALUATED if name in rows]:
        examples = experiment.examples(rows[split])
        metrics[split], compared = experiment.trainer.judge(
            examples, f"evaluating on {split}"
        )
        if is_own and compared:
            _complete(model_dir, split, experiment.model.head, compared)
    return metrics


def _complete(
    model_dir: str | os.PathLike[str],
    split: str,
    head: Any,
    compared: dict[str, Any],
) -> None:
    """Stores a split's predictions if the run folder lacks some of them.

    `compared` has the predictions and labels from `head.compare`. If they
    cannot be stored, logs a warning.
    """
    try:
        predictions.complete_predictions(model_dir, split, head, compared)
    except (OSError, DataError) as error:
        _LOGGER.warning("Predictions were not stored: %s", cut(error))


def _is_own(
    config: Config,
    model_dir: str | os.PathLike[str],
    rows: dict[str, list[dict[str, Any]]],
) -> bool:
    """Returns whether a run folder holds a finished run of `config` on `rows`.

    `rows` is a dict from split to the rows of the data.
    """
    try:
        # Not the configuration that the user asked for, from which this one may
        # have been derived.
        saved = resolve.load_config(Path(model_dir) / "config.yaml")
        result = earlier_runs.read_result(Path(model_dir)) or {}
        fingerprints = sampling.fingerprints(rows)
    except UserError:  # Its own data may have moved.
        return False
    differing = earlier_runs.differing_settings(saved, config).keys()
    return (
        # Runs of several machines are evaluated on one.
        differing <= {"distribution_strategy"}
        and "merged" not in result
        and result.get("data_fingerprint") == fingerprints
    )
