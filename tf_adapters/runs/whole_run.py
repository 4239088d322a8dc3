"""Trains a run of one task, and the pretraining before it, if there is one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import own_files
from tf_adapters.common.errors import ConfigError
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import pretraining
from tf_adapters.runs import remote_folder
from tf_adapters.runs import training_run

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.runs.task_data import TaskData


def train_run(
    config: Config,
    data: TaskData,
    model_dir: Path,
    test: bool = True,
    overwrite: bool = False,
    declared: Any = None,
    tables: Any = (),
) -> dict[str, Any]:
    """Trains a run of one task, and returns the content of `result.json`.

    If `pretrain.steps` is set, the run's weights are pretrained first.

    Args:
        config: `Config`.
        data: `TaskData`; see `train_experiment`, which empties its rows.
        model_dir: Path of the run folder.
        test: See `train_experiment`.
        overwrite: See `train_experiment`.
        declared: See `RunFolder`.
        tables: See `train_experiment`.
    """
    declared = declared or config
    if config.pretrain.steps:
        config = _pretrained(config, data, model_dir, overwrite, declared)
    return training_run.train_experiment(
        config,
        data,
        model_dir,
        test=test,
        overwrite=overwrite,
        prepare=pretraining.preparation_of(data.task, config),
        declared=declared,
        tables=tables,
    )


def _pretrained(
    config: Config,
    data: Any,
    model_dir: Path,
    overwrite: bool,
    declared: Any,
) -> Config:
    """Pretrains a run's weights in the subfolder `pretrain` of the run folder.

    Returns `config` with `init_adapter` set to this subfolder. `declared` is
    the configuration that the user asked for.
    """
    _check_workers_read(config, model_dir)
    goes_on = earlier_runs.of_stopped_command(
        model_dir, declared, data.fingerprints
    )
    folder = model_dir.absolute() / "pretrain"
    own_files.check_folder(folder)
    return pretraining.train_pretraining(
        config,
        data,
        folder,
        overwrite=overwrite and goes_on is None,
    )


def _check_workers_read(config: Config, model_dir: Path) -> None:
    is_elsewhere = remote_folder.address(model_dir) != str(model_dir)
    if is_elsewhere and config.distribution_strategy == "multi_worker_mirrored":
        raise ConfigError(
            "Workers that pretrain first must all read the pretrained "
            f"weights, but --model_dir={remote_folder.address(model_dir)} is "
            "an address, to which only one of them writes. Give a folder that "
            "all of them share."
        )
