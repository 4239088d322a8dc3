"""Trains and evaluates a run of one task, and writes its run folder."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import time
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import keras_backend
from tf_adapters.data.rows import sampling
from tf_adapters.data.rows import zero_shot_transfer
from tf_adapters.runs import calibration
from tf_adapters.runs import cluster_check
from tf_adapters.runs import frozen_block_cache
from tf_adapters.runs import run_facts
from tf_adapters.runs import run_folder_of_workers
from tf_adapters.runs import strategies
from tf_adapters.runs.experiment import Experiment
from tf_adapters.runs.recovery import Recovery
from tf_adapters.runs.run_folder import frozen_weights
from tf_adapters.training import callbacks
from tf_adapters.training import workers
from tf_adapters.training.loop import Loop

if TYPE_CHECKING:
    import os

    from tf_adapters.config.settings import Config
    from tf_adapters.data.examples import Examples
    from tf_adapters.runs.run_folder import RunFolder
    from tf_adapters.runs.task_data import TaskData
    from tf_adapters.training.trainer import Trainer


def train_experiment(
    config: Config,
    data: TaskData,
    model_dir: str | os.PathLike[str],
    test: bool = True,
    overwrite: bool = False,
    prepare: Callable[..., Any] | None = None,
    declared: Any = None,
    tables: Any = (),
) -> dict[str, Any]:
    """Trains one task, writes the run folder, and returns the result.

    If an earlier process of the same run was stopped, training resumes from
    its last checkpoint.

    Args:
        config: `Config`.
        data: `TaskData`. Its dict of rows is emptied once the rows are encoded,
            to free their memory.
        model_dir: Path of the run folder.
        test: Whether to also evaluate on further validation splits of the
            task, and on the test split if it is labeled. Default: `True`.
        overwrite: Whether to remove an earlier run in `model_dir` first.
            Default: `False`.
        prepare: Function to call with the model before training, or `None`
            (default). If given, the result's `before` has the validation
            metrics after this call, before training.
        declared: See `RunFolder`.
        tables: Paths of files with the rows of a table that was in memory. They
            are moved to the run folder, see `RunFolder.save_tables`.

    Returns:
        Dict, the content of `result.json`.

    Raises:
        Stopped: If the process was asked to stop, or another worker was lost.
    """
    keras_backend.use_backend(config.backend)
    strategy = strategies.strategy_of(config)
    with workers.losses_as_stops(strategy):
        started = time.perf_counter()
        if workers.num_workers(strategy) > 1:
            cluster_check.check_workers_agree(
                strategy, config, data.fingerprints
            )
        # Load these first, so that missing data are reported before training.
        languages = {}
        if test and config.data.eval_languages:
            languages = zero_shot_transfer.load_languages(
                data.task, config.data
            )
        # Find errors in the configuration before an earlier run is removed.
        experiment = Experiment(
            *(config, data.task),
            train_rows=data.rows["train"],
            strategy=strategy,
        )
        # Raises an error if the adapters of these blocks cannot be left out.
        with experiment.model.without(
            range(max(config.train.adapter_drop or [0]))
        ):
            pass
        if config.train.calibrate:
            calibration.check_calibration(experiment.model.head, config.head)
        if prepare is not None:
            prepare(experiment.model)
        watchers = _watchers(strategy, config)
        run = run_folder_of_workers.open_run(
            strategy,
            model_dir,
            config,
            data.fingerprints,
            overwrite,
            declared,
            frozen_weights(experiment.model),
        )
        with contextlib.closing(run):
            run.save_tables(tables)
            run_facts.print_weights(experiment.model, run)
            examples = experiment.examples_by_split(data.rows)
            data.rows.clear()
            run_facts.print_sizes(examples, config.train.batch_size)
            run_facts.print_compilation(experiment.trainer.compiled_lengths)
            before = {}
            if prepare is not None:
                validation = examples["validation"]
                before = {"before": experiment.trainer.evaluate(validation)}
            result = _train(experiment, run, examples, watchers)
            result["data_fingerprint"] = data.fingerprints
            result |= before | run_facts.of_pretraining(config.init_adapter)
            if test:
                result |= evaluate_held_out(experiment.trainer, examples, run)
            if languages:
                result["transfer"] = experiment.transfer(languages, run)
                result["transfer_fingerprint"] = sampling.fingerprints(
                    {name: rows for name, (_, rows) in languages.items()}
                )
            result["seconds"] = round(time.perf_counter() - started, 1)
            run.save_result(result)
            # Other workers may need the chief's files, and must not end first.
            workers.wait_for_all(strategy)
        return result


def _watchers(strategy: Any, config: Config) -> list[Any]:
    """Creates the Keras callbacks of a run, on the chief only.

    Callbacks on all workers would log the same.

    Raises:
        ConfigError: On every worker, if a callback cannot be created.
    """
    made = run_folder_of_workers.on_chief(
        strategy, lambda: callbacks.make_callbacks(config.train.callbacks)
    )
    return made or []


def _train(
    experiment: Experiment,
    run: RunFolder,
    examples: dict[str, Examples],
    watchers: Any,
) -> dict[str, Any]:
    """Trains a run; returns the `result.json` entries known after training."""
    model = experiment.model
    details = {
        "task": experiment.task.name,
        "text_fields": list(experiment.task.text_fields),
        "max_length": experiment.config.data.max_length,
    }
    outcome, compared = _fit(experiment, run, examples, details, watchers)
    if experiment.config.train.calibrate:
        compared = calibration.calibrate(experiment, examples["validation"])
        details["validation"] = outcome["validation"]
        run.save_adapter(model, details)
        outcome["temperature"] = model.head.temperature
    run.save_predictions("validation", model.head, compared)
    report = model.method.report(model)
    seconds = outcome.pop("seconds")
    return {
        **run_facts.facts(experiment.config, model),
        **outcome,
        **({"method_report": report} if report else {}),
        "training_seconds": seconds,
    }


def _fit(
    experiment: Experiment,
    run: RunFolder,
    examples: dict[str, Examples],
    details: dict[str, Any],
    watchers: Any,
) -> tuple[dict[str, Any], Any]:
    """Trains; returns the dict of `Loop.run` and the validation predictions."""
    config = experiment.config

    def save_best(values: Any) -> None:
        run.save_adapter(experiment.model, {**details, "validation": values})

    recovery = Recovery(
        run, config.train.checkpoint_seconds, experiment.strategy
    )
    train, validation = frozen_block_cache.cached_splits(
        experiment.trainer, examples, run.folder
    )
    loop = Loop(
        experiment.trainer,
        train,
        validation,
        run.log,
        save_best,
        recovery,
        lambda step: run.save_snapshot(experiment.model, step, details),
        watchers,
    )
    with recovery.listening():
        return loop.run(), loop.predictions


def evaluate_held_out(
    trainer: Trainer, examples: dict[str, Any], run: RunFolder
) -> dict[Any, Any]:
    """Evaluates on all splits except the training and validation splits.

    Args:
        trainer: `Trainer`.
        examples: Dict from split to `Examples`.
        run: `RunFolder` to store the predictions in.

    Returns:
        Dict from split to a dict of metrics.
    """
    metrics = {}
    for split in examples:
        if split not in ("train", "validation"):
            metrics[split], compared = trainer.judge(
                examples[split], f"evaluating on {split}"
            )
            run.save_predictions(split, trainer.model.head, compared)
    return metrics
