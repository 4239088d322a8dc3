"""A finished run, loaded to evaluate it, to predict, or to export it."""

import dataclasses
from pathlib import Path

from tf_adapters import methods
from tf_adapters.common.errors import ConfigError
from tf_adapters.data.rows import splits
from tf_adapters.data.rows import zero_shot_transfer
from tf_adapters.runs import pretraining_task
from tf_adapters.runs.experiment import Experiment


def load_finished_run(config, task, model_dir):
    """Returns the `Experiment` of a finished run's adapter.

    Args:
        config: `Config`.
        task: The task of its configuration; that of a pretraining is another.
        model_dir: The run's folder.
    """
    if isinstance(config.method, methods.NoBert):
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
    """
    task = splits.get_task(config)
    languages = zero_shot_transfer.load_languages(task, config.data)
    rows = {} if languages else splits.load_rows(config, task)
    experiment = load_finished_run(config, task, model_dir)
    if languages:
        return {"transfer": experiment.transfer(languages)}
    return {
        split: experiment.trainer.evaluate(experiment.examples(rows[split]))
        for split in splits.EVALUATED
        if split in rows
    }
