"""A run of several tasks: `train.py --method=multitask --tasks=a,b`."""

import dataclasses
from pathlib import Path
import time

from tf_adapters.common.errors import ConfigError
from tf_adapters.config import task as config_task
from tf_adapters.data.batches.task_mixture import Mixture
from tf_adapters.data.rows.splits import EVALUATED
from tf_adapters.models.multitask_model import MultiTaskModel
from tf_adapters.models.variable_groups import count_weights
from tf_adapters.runs import remote_folder
from tf_adapters.runs import run_facts
from tf_adapters.runs import run_folder_of_workers
from tf_adapters.runs import strategies
from tf_adapters.runs import training_run
from tf_adapters.runs.experiment import Experiment
from tf_adapters.runs.recovery import Recovery
from tf_adapters.runs.run_folder import frozen_weights
from tf_adapters.training import workers
from tf_adapters.training.loop import Loop
from tf_adapters.training.multitask_trainer import MultiTaskTrainer
from tf_adapters.training.multitask_trainer import of_task


def train_multitask(config, data, model_dir, test=True, overwrite=False):
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
        Dict that `result.json` of the whole run holds.

    Raises:
        ConfigError: If the configuration asks for snapshots, calibration or
            callbacks.
        Stopped: If the process was asked to stop, or another worker was lost.
    """
    if config.train.snapshot_steps:
        raise ConfigError(
            "`train.snapshot_steps` is for runs of one task. Leave it out, or "
            "take `train.keep` and `train.max_steps`."
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
    with workers.losses_as_stops(strategies.strategy_of(config)):
        started = time.perf_counter()
        experiments = _make_experiments(config, data)
        model = MultiTaskModel(
            {name: e.model for name, e in experiments.items()}
        )
        fingerprints = {name: one.fingerprints for name, one in data.items()}
        strategy = next(iter(experiments.values())).strategy
        folders = _Folders(
            strategy, model_dir, config, model, fingerprints, overwrite
        )
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


def _fit(experiments, model, folders, examples):
    """Trains; returns the summary of `Loop.run` and the predictions."""
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


def _results(experiments, model, folders, outcome):
    """Returns a dict from task to its result, without the test splits."""
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


def _make_experiments(config, data):
    experiments, sibling = {}, None
    for name, own in config_task.by_task(config).items():
        sibling = Experiment(
            own,
            data[name].task,
            sibling=sibling,
            train_rows=data[name].rows["train"],
        )
        experiments[name] = sibling
    return experiments


class _Folders:
    """The run folder of the whole run, and in it one for each task.

    Args:
        strategy: `tf.distribute.Strategy`.
        model_dir: Path.
        config: `Config`.
        model: `MultiTaskModel`.
        fingerprints: Dict from task to the fingerprint of its data.
        overwrite: See `RunFolder`.
    """

    def __init__(
        self, strategy, model_dir, config, model, fingerprints, overwrite
    ):
        self.strategy = strategy
        self.model = model
        self.config = config
        self.fingerprints = fingerprints
        self.whole = run_folder_of_workers.open_run(
            strategy,
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
        # On its own, a task is an adapter on the jointly trained encoder.
        self.configs = {
            name: dataclasses.replace(
                own, encoder=encoder, method=config.method.adapter
            )
            for name, own in config_task.by_task(config).items()
        }
        self.tasks = {
            name: run_folder_of_workers.open_run(
                strategy,
                self.whole.folder / name,
                own,
                fingerprints[name],
                overwrite,
            )
            for name, own in self.configs.items()
        }
        for record in self.whole.restored:
            self._log_to_tasks(record)
        run_facts.print_weights(model, self.whole)

    def log(self, record):
        """Logs a record to the whole run, and validations to their tasks."""
        self.whole.log(record)
        self._log_to_tasks(record)

    def _log_to_tasks(self, record):
        for name, folder in self.tasks.items():
            if "validation" in record:
                own = {"validation": of_task(record["validation"], name)}
                folder.log({**record, **own})

    def save_best(self, values):
        """Saves the encoder, if it is trained, and the adapter of each task.

        Args:
            values: Dict of the validation metrics of all tasks.
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
                    "max_length": self.config.data.max_length,
                    "validation": of_task(values, name),
                },
            )
        remote_folder.push(self.whole.folder)

    def save_results(self, outcome, results, seconds):
        """Writes a `result.json` for each task and for the whole run.

        Returns:
            The result of the whole run. Its `tasks` has the metrics of each
            task by split.
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
