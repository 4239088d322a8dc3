"""A run of several tasks: `train.py --method=multitask --tasks=a,b`."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import keras_backend
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import task as config_task
from tf_adapters.data.batches.task_mixture import Mixture
from tf_adapters.models.multitask_model import MultiTaskModel
from tf_adapters.models.variable_groups import count_weights
from tf_adapters.runs import cluster_check
from tf_adapters.runs import run_facts
from tf_adapters.runs import strategies
from tf_adapters.runs import training_run
from tf_adapters.runs.experiment import Experiment
from tf_adapters.runs.multitask_folders import MultitaskFolders
from tf_adapters.runs.recovery import Recovery
from tf_adapters.training import workers
from tf_adapters.training.loop import Loop
from tf_adapters.training.multitask_trainer import MultiTaskTrainer
from tf_adapters.training.multitask_trainer import of_task

if TYPE_CHECKING:
    import os

    import tensorflow as tf

    from tf_adapters.config.settings import Config


def train_multitask(
    config: Config,
    data: dict[str, Any],
    model_dir: str | os.PathLike[str],
    test: bool = True,
    overwrite: bool = False,
) -> dict[Any, Any]:
    """Trains several tasks together and writes their run folders.

    Args:
        config: `Config` with a method that has `tasks`.
        data: Dict from the name of a task to its `TaskData`.
        model_dir: Path of the run folder. In it, each task gets a run folder
            named after the task, which can be used like any other run folder.
            A trained encoder is written once, to `encoder`.
        test: Whether to evaluate on labeled test splits too. Default: `True`.
        overwrite: Whether to remove an earlier run in `model_dir` first.
            Default: `False`.

    Returns:
        Dict, the content of the whole run's `result.json`.

    Raises:
        ConfigError: If the configuration asks for snapshots, a smallest number
            of steps, calibration or callbacks.
        Stopped: If the process was asked to stop, or another worker was lost.
    """
    if config.train.snapshot_steps:
        raise ConfigError(
            "`train.snapshot_steps` is for runs of one task. Leave it out, or "
            "take `train.keep` and `train.max_steps`."
        )
    if config.train.min_steps:
        raise ConfigError(
            "`train.min_steps` is for runs of one task. Leave it out, and set "
            "`train.epochs`."
        )
    if config.train.calibrate:
        raise ConfigError(
            "`train.calibrate` is for runs of one task. Leave it out, or give "
            "a task's `head.temperature` where its adapter is used."
        )
    if config.train.callbacks:
        raise ConfigError(
            "`train.callbacks` are for runs of one task: a Keras callback "
            "watches one model. Leave them out; metrics.jsonl has everything."
        )
    keras_backend.use_backend(config.backend)
    strategy = strategies.strategy_of(config)
    with workers.losses_as_stops(strategy):
        started = time.perf_counter()
        fingerprints = {name: one.fingerprints for name, one in data.items()}
        if workers.num_workers(strategy) > 1:
            cluster_check.check_workers_agree(strategy, config, fingerprints)
        experiments = _make_experiments(config, data, strategy)
        model = MultiTaskModel(
            {name: e.model for name, e in experiments.items()}
        )
        folders = MultitaskFolders(
            strategy, model_dir, config, model, fingerprints, overwrite
        )
        with contextlib.closing(folders):
            examples = {
                name: e.examples_by_split(data[name].rows)
                for name, e in experiments.items()
            }
            run_facts.print_sizes(
                {
                    f"{name} {split}": some
                    for name, splits in examples.items()
                    for split, some in splits.items()
                },
                config.train.batch_size,
            )
            for one in experiments.values():
                run_facts.print_compilation(one.trainer.compiled_lengths)
            outcome, compared = _fit(experiments, model, folders, examples)
            for name, own in compared.items():
                head = experiments[name].model.head
                folders.tasks[name].save_predictions("validation", head, own)
            results = _results(experiments, model, folders, outcome)
            for name, splits in examples.items() if test else ():
                trainer = experiments[name].trainer
                results[name] |= training_run.evaluate_held_out(
                    trainer, splits, folders.tasks[name]
                )
            seconds = time.perf_counter() - started
            return folders.save_results(outcome, results, seconds)


def _fit(
    experiments: dict[str, Experiment],
    model: Any,
    folders: MultitaskFolders,
    examples: Any,
) -> tuple[dict[str, Any], Any]:
    """Trains all tasks together.

    Returns the dict that `Loop.run` returned, and the validation predictions: a
    dict from task to the dict that the `compare` of the task's head returned.
    """
    config = folders.config
    trainers = {name: e.trainer for name, e in experiments.items()}
    train, validation = (
        Mixture({name: splits[split] for name, splits in examples.items()})
        for split in ("train", "validation")
    )
    recovery = Recovery(
        folders.whole, config.train.checkpoint_seconds, folders.strategy
    )
    loop = Loop(
        MultiTaskTrainer(model, trainers, config.method.sampling),
        train,
        validation,
        folders.log,
        folders.save_best,
        recovery,
    )
    with recovery.listening():
        return loop.run(), loop.predictions


def _results(
    experiments: dict[str, Experiment],
    model: Any,
    folders: MultitaskFolders,
    outcome: Any,
) -> dict[Any, dict[str, Any]]:
    """Returns a dict from task to the content of its `result.json`.

    Metrics on the test splits are added later.
    """
    return {
        name: {
            **run_facts.facts(own, experiments[name].model),
            "trained_weights": count_weights(
                model.own_variables(name).values()
            ),
            "trained_with": list(experiments),
            "validation": of_task(outcome["validation"], name),
            "best_step": outcome["best_step"],
            "steps": outcome["steps"],
            "data_fingerprint": folders.fingerprints[name],
        }
        for name, own in folders.configs.items()
    }


def _make_experiments(
    config: Config, data: Any, strategy: tf.distribute.Strategy
) -> dict[Any, Any]:
    experiments, sibling = {}, None
    for name, own in config_task.by_task(config).items():
        sibling = Experiment(
            own,
            data[name].task,
            sibling=sibling,
            train_rows=data[name].rows["train"],
            strategy=strategy,
        )
        experiments[name] = sibling
    return experiments
