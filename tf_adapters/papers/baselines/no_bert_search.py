"""Searches for the best network without an encoder (Houlsby et al. 3.3).

The paper's own search (Neural AutoML, 10,000 networks per task on 30 machines
for a week) is replaced by Optuna's TPE with `search.trials` trials. The preset
`no_bert` defines the search space. The trial with the best validation metric is
used. Trials are stored in the run folder, so the same command resumes a stopped
search. A resumed search draws different networks from an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import hashlib
import json
import operator
import time
from typing import TYPE_CHECKING
from typing import Any

import keras
import numpy as np

from tf_adapters.common import own_files
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import Stopped
from tf_adapters.common.extras import needs_extra
from tf_adapters.common.sigterm import on_sigterm
from tf_adapters.config import resolve
from tf_adapters.models.variable_groups import count_weights
from tf_adapters.papers.baselines import no_bert_model
from tf_adapters.papers.baselines import no_bert_training
from tf_adapters.runs import remote_folder
from tf_adapters.runs.provenance import provenance
from tf_adapters.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from pathlib import Path

    from tf_adapters.config.settings import Config
    from tf_adapters.runs.task_data import TaskData
    from tf_adapters.tasks.task import Task


TRIALS, MODEL = "trials.log", "model.keras"
_KINDS = ("classification", "regression")
_WEIGHTS = "class_weights"
# Settings that only runs with an encoder use.
_UNUSED = (
    *(
        "quantize",
        "pretrain.steps",
        "init_adapter",
        "stack_on",
        "language_adapters",
    ),
    *("data.eval_languages", "data.windows", "distribution_strategy"),
    *("train.learning_rate", "train.precision", "train.calibrate"),
    *("train.remat", "train.callbacks"),
    *("train.max_steps", "train.min_steps", "train.validate_every_steps"),
    *("train.keep", "train.evaluate_loss", "train.snapshot_steps"),
    *("train.warmup_fraction", "train.decay", "train.clip_norm"),
    *("train.weight_decay", "train.accumulation_steps"),
    *("train.adapter_drop", "train.encoder_dropout"),
    "train.log_gradient_norms",
)


def run_search(
    config: Config,
    task_data: TaskData,
    model_dir: Any,
    test: bool = True,
    overwrite: bool = False,
) -> dict[Any, Any]:
    """Searches for a network, writes the run folder, and returns the result.

    Args:
        config: `Config` with `search`.
        task_data: `TaskData` of classification or regression.
        model_dir: Run folder. It gets the best network, `model.keras`.
        test: Whether to evaluate on all splits, not only on validation.
        overwrite: Whether to discard earlier trials.

    Raises:
        ConfigError: If the task is of another kind, if `search` is invalid, or
            if a setting is given that has no effect.
    """
    started = time.perf_counter()
    _check(config, task_data.task)
    fingerprints = task_data.fingerprints
    data = no_bert_training.Data(config, task_data.task, task_data.rows)
    run = RunFolder(model_dir, config, fingerprints, overwrite)
    if overwrite:
        (run.folder / TRIALS).unlink(missing_ok=True)
    with contextlib.closing(run), _ending_at_sigterm(overwrite):
        best = _try_networks(config, run, data, fingerprints)
        network = keras.saving.load_model(run.folder / MODEL, compile=False)
        splits = data.splits if test else ("validation",)
        metrics = {}
        for split in splits:
            metrics[split], compared = data.judge(network, split)
            run.save_predictions(split, data.head, compared)
        result = {
            **_facts(config, network, best),
            **metrics,
            "data_fingerprint": fingerprints,
            "seconds": round(time.perf_counter() - started, 1),
            **provenance(),
        }
        run.save_result(result)
    return result


@contextlib.contextmanager
def _ending_at_sigterm(overwrite: bool) -> Iterator[None]:
    """Context manager that stops the search at SIGTERM, by raising `Stopped`.

    The network that is being trained then is lost.
    """
    without = " without --overwrite" if overwrite else ""

    def stop(number: Any, frame: Any) -> None:
        raise Stopped(
            f"Stopped by SIGTERM. The same command{without} resumes after the "
            "last finished network."
        )

    with on_sigterm(stop):
        yield


def _try_networks(config: Config, run: Any, data: Any, fingerprint: Any) -> Any:
    """Trains `search.trials` networks, except those that finished earlier.

    Returns the best trial.
    """
    study = _open_study(run.folder, config, fingerprint)
    for trial in _finished(study):
        _log(run, trial)
    if _finished(study):
        _keep_file_of(run, study.best_trial)
    while len(_finished(study)) < config.search.trials:
        _run_trial(study, run, data, config)
        remote_folder.copy_to_address(run.folder)
    return study.best_trial


def _check(config: Config, task: Task) -> None:
    if task.head not in _KINDS:
        raise ConfigError(
            f"`no_bert` is for tasks of {' and '.join(_KINDS)}; task "
            f"`{task.name}` is of {task.head}."
        )
    _check_unused(config)
    if config.search.trials < 1:
        raise ConfigError("`search.trials` must be at least 1 for `no_bert`.")
    no_bert_model.check_space(config.search.space or {})


def _check_unused(config: Config) -> None:
    """Raises `ConfigError` if a setting that `no_bert` ignores is given."""
    usual = resolve.resolve_config({"task": config.task, "method": "no_bert"})
    values = {key: operator.attrgetter(key) for key in _UNUSED}
    given = [key for key, get in values.items() if get(config) != get(usual)]
    given += [f"head.{key}" for key in set(config.head or ()) - {_WEIGHTS}]
    if given:
        raise ConfigError(
            "`no_bert` searches for a network that is trained from scratch; "
            "`search.space` has all its settings, learning rates too. Leave "
            f"out what it does not use: {', '.join(sorted(given))}"
        )


def _open_study(folder: Path, config: Config, fingerprint: Any) -> Any:
    """Returns the Optuna study that is stored in a folder, or creates it.

    `fingerprint` identifies the data. Other data or settings get a new study.
    """
    with needs_extra("search", "A search"):
        import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # An earlier search with other settings may have used the same folder.
    content = [config.task, config.seed, config.search.space, fingerprint]
    name = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
    own_files.remove_link(folder / TRIALS)
    # Left by a process that was killed. This process holds the folder's lock.
    own_files.remove_link(folder / f"{TRIALS}.lock")
    backend = optuna.storages.journal.JournalFileBackend(str(folder / TRIALS))
    study = optuna.create_study(
        storage=optuna.storages.JournalStorage(backend),
        study_name=name,
        direction="maximize",
        load_if_exists=True,
    )
    for trial in study.get_trials(states=[optuna.trial.TrialState.RUNNING]):
        # The process of this trial no longer runs.
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    # A resumed search must not draw the same networks again.
    seed = config.seed + len(study.get_trials())
    study.sampler = optuna.samplers.TPESampler(seed=seed)
    return study


def _finished(study: Any) -> Any:
    import optuna

    return study.get_trials(states=[optuna.trial.TrialState.COMPLETE])


def _log(run: Any, trial: Any) -> None:
    run.log({"step": trial.number, "metric": trial.value, **trial.params})


def _run_trial(study: Any, run: Any, data: Any, config: Config) -> None:
    """Trains one network, and saves it if it is the best so far."""
    trial = study.ask()
    settings = no_bert_model.suggest(trial, config.search.space)
    keras.utils.set_random_seed(config.seed)
    network = no_bert_model.make_network(
        settings, data.table, data.pad_id, data.num_outputs
    )
    value = no_bert_training.train_network(
        network, settings, data, config.train
    )
    # Of equally good trials the first is the best, as in Optuna.
    is_best = value > max((t.value for t in _finished(study)), default=-np.inf)
    if is_best:
        own_files.remove(_file_of(run, trial))
        network.save(_file_of(run, trial))
    trial = study.tell(trial, value)
    if is_best:
        _keep_file_of(run, trial)
    _log(run, trial)
    print(f"trial {trial.number}: {data.metrics[0]} {value:.4f}", flush=True)


def _file_of(run: Any, trial: Any) -> Any:
    # Each trial has its own file, because the process can end between saving
    # the file and storing the trial.
    return run.folder / f"trial_{trial.number}.keras"


def _keep_file_of(run: Any, trial: Any) -> None:
    """Renames a trial's file to `model.keras`, and removes the other files."""
    if _file_of(run, trial).exists():
        _file_of(run, trial).replace(run.folder / MODEL)
    for other in run.folder.glob("trial_*.keras"):
        other.unlink()


def _facts(config: Config, network: Any, best: Any) -> dict[str, Any]:
    return {
        "task": config.task,
        "encoder": None,
        "method": "no_bert",
        "seed": config.seed,
        "trained_weights": count_weights(network.trainable_variables),
        "trials": config.search.trials,
        "best_trial": best.number,
        "settings": best.params,
    }
