"""A finished run, loaded to evaluate it, to predict, or to export it."""

import dataclasses
import logging
from pathlib import Path

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut
from tf_adapters.data.rows import sampling
from tf_adapters.data.rows import splits
from tf_adapters.data.rows import zero_shot_transfer
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import predictions
from tf_adapters.runs import pretraining_task
from tf_adapters.runs.experiment import Experiment

_LOGGER = logging.getLogger(__name__)


def load_finished_run(config, task, model_dir):
    """Returns the `Experiment` of a finished run's adapter.

    Args:
        config: `Config`.
        task: The task of its configuration; that of a pretraining is another.
        model_dir: The run's folder.
    """
    if config.method.own_training() is not None:
        raise ConfigError(
            f"{model_dir} holds a baseline without an encoder. Its metrics are "
            "in result.json, and `keras.saving.load_model` loads its "
            "model.keras; nothing else is done with it here."
        )
    task = pretraining_task.task_of_run(task, model_dir)
    return Experiment(config, task, Path(model_dir) / "adapter")


def load_to_export(config, model_dir):
    """Returns the `Experiment` of a run on this machine, without its data.

    The class names come from the adapter.
    """
    config = dataclasses.replace(config, distribution_strategy="one_device")
    return load_finished_run(config, splits.declared_task(config), model_dir)


def evaluate_run(config, model_dir):
    """Returns the metrics of a run's adapter on validation and test.

    With `data.eval_languages` it is under `transfer` the summary over them.
    An evaluation with the run's own settings and data stores predictions that
    the run lacks.
    """
    task = splits.get_task(config)
    languages = zero_shot_transfer.load_languages(task, config.data)
    rows = {} if languages else splits.load_rows(config, task)
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


def _complete(model_dir, split, head, compared):
    """Stores predictions that a run lacks, if its folder can be written to."""
    try:
        predictions.complete_predictions(model_dir, split, head, compared)
    except (OSError, DataError) as error:
        _LOGGER.warning("Predictions were not stored: %s", cut(error))


def _is_own(config, model_dir, rows):
    """Whether these are the settings and the data that a run finished with."""
    try:
        fingerprint = sampling.fingerprints(rows)
        return bool(earlier_runs.finished(model_dir, config, fingerprint))
    except ConfigError:
        return False
