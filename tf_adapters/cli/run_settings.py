"""Checks the settings of a command that uses a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import adapter_folder
from tf_adapters.common import dataclass_config
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown
from tf_adapters.config import resolve
from tf_adapters.config import settings as config_settings
from tf_adapters.config import task as config_task

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config


# Settings that may be changed for a finished run, because evaluation,
# prediction or export uses them. So may some of the head's settings.
_FREE = (
    *("task", "encoder", "quantize", "distribution_strategy", "tpu"),
    "backend",
    *("stack_on", "language_adapters", "method.adapters", "method.leave_out"),
    *("data.data_dir", "data.task_file", "data.max_length", "data.doc_stride"),
    *("data.windows", "data.window_stride"),
    *config_settings.FILES,
    *("data.batching", "data.length_buckets", "data.eval_languages"),
    *("data.max_validation_examples", "data.max_test_examples"),
    *("data.low_resource", "train.eval_batch_size", "train.precision"),
    *("train.evaluate_loss", "train.deterministic", "train.jit_compile"),
)


def check_settings_of_run(config: Config, model_dir: Path, mode: str) -> None:
    """Checks that a command changes no setting that is fixed after training.

    Some settings, such as the learning rate, have an effect only in training.

    Args:
        config: `Config` of the run, with the settings of the command.
        model_dir: Path of the run folder.
        mode: `"eval"`, `"predict"`, `"encode"` or `"export"`.

    Raises:
        ConfigError: If the command changes a fixed setting. Names the first.
    """
    free = (*_FREE, *_free_of_head(config))
    head = _head_of_run(model_dir)
    given = head | _flat(config)
    runs = [head | own for own in _settings_of_run(model_dir)]
    for key in dict.fromkeys([*given, *runs[0]]):
        is_free = key in free or key.partition(".")[0] in free
        if is_free or given.get(key) in [run.get(key) for run in runs]:
            continue
        name = "method" if key == "method.name" else key
        raise ConfigError(
            f"--mode={mode} takes `{name}` from the run, where it is "
            f"{shown(runs[0].get(key))}: leave it out. Received: "
            f"{shown(given.get(key))}"
        )


def _free_of_head(config: Config) -> list[str]:
    # Imported here, because it imports Keras.
    from tf_adapters import heads

    head = heads.HEADS[config_task.declared_task(config).head]
    return [f"head.{name}" for name in head.at_inference]


def _head_of_run(model_dir: Path) -> dict[Any, Any]:
    """Returns all settings of a run's head, in a flat dict.

    The settings are read from the run's adapter, because the configuration of
    the run has only some of them. The dict is empty if there is no adapter.
    """
    folder = model_dir / "adapter"
    if not folder.is_dir():
        return {}
    head = adapter_folder.read_adapter_config(folder)["head"]
    return dataclass_config.flatten({"head": head or {}})


def _settings_of_run(model_dir: Path) -> list[dict[str, Any]]:
    """Returns the settings of the run in a folder, as a list of flat dicts.

    The first dict has the settings that the run was trained with. If they were
    derived from other settings, which the user asked for, a second dict has the
    user's settings.
    """
    from tf_adapters.runs import earlier_runs

    names = ("config.yaml", earlier_runs.DECLARED)
    return [_read(model_dir / n) for n in names if (model_dir / n).exists()]


def _read(path: Any) -> dict[str, Any]:
    values = resolve.load_saved(path)
    # The task file may be gone, and the task's name is already known.
    values.get("data", {}).pop("task_file", None)
    return _flat(resolve.resolve_config(values))


def _flat(config: Config) -> dict[str, Any]:
    return dataclass_config.flatten(resolve.to_dict(config))
