"""A planned run: its settings, and the folder name derived from them."""

import dataclasses
import functools
import hashlib
import json
import re
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.config import resolve
from tf_adapters.config import settings as config_settings
from tf_adapters.config import task as config_task

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config


@dataclasses.dataclass(frozen=True)
class Run:
    """A planned run.

    Attributes:
        id: Name of the run's folder.
        point: Dict from each key that a study varies to this run's value.
        config: `Config`.
        metrics: Dict from each of the run's tasks to the name of the metric to
            report.
        settings: Dict from the dotted name of each setting to its value. Values
            of settings that the study's file sets are exactly as in this file.
    """

    id: str
    point: dict[str, Any]
    config: resolve.Config
    metrics: dict[str, Any]
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def metric(self) -> Any:
        """Name of the metric to report: "mean" for a run of several tasks."""
        if len(self.metrics) > 1:
            return "mean"
        return next(iter(self.metrics.values()))


def first_metrics(config: "Config") -> dict[Any, Any]:
    """Returns a dict from each task of a run to the name of its first metric.

    Ignores `train.select_by`, the metric by which the best weights are chosen.

    Args:
        config: `Config`.
    """
    return {
        name: config_task.declared_task(_unselected(own)).metrics[0]
        for name, own in config_task.by_task(config).items()
    }


def _unselected(config: "Config") -> "Config":
    """Returns a configuration without `train.select_by`."""
    train = dataclasses.replace(config.train, select_by=None)
    return dataclasses.replace(config, train=train)


def identity(settings: Any) -> str:
    """Returns a string that is equal for configurations of the same run.

    Settings that locate the data or a TPU, or that say how a device computes,
    are ignored. The content of a table is compared by
    `finished_runs.is_finished`.

    Args:
        settings: Nested dict, from `resolve.to_dict` or a `config.yaml`.
    """
    elsewhere = config_settings.ELSEWHERE
    kept = {k: v for k, v in settings.items() if k not in elsewhere}
    kept.setdefault("data", {})
    for section in {"data", "train"}.intersection(kept):
        kept[section] = {
            key: value
            for key, value in kept[section].items()
            if f"{section}.{key}" not in elsewhere
        }
    return json.dumps(kept, sort_keys=True)


def run_id(config: "Config") -> str:
    """Returns a run's folder name: its task, method, seed and a hash."""
    settings = resolve.to_dict(config)
    # Settings with default values are not hashed, so that names of folders do
    # not change when later versions add settings.
    text = identity(_without_defaults(settings))
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    name = f"{config.task}-{settings['method']['name']}-seed{config.seed}"
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)}-{digest}"


def _without_defaults(settings: Any) -> dict[Any, Any]:
    """Returns the settings whose values differ from the defaults.

    The section `method` is returned unchanged.
    """
    defaults = _defaults()
    sections = {
        key: {k: v for k, v in value.items() if v != defaults[key][k]}
        for key, value in settings.items()
        if isinstance(defaults[key], dict)
    }
    single = {
        key: value
        for key, value in settings.items()
        if key not in sections and value != defaults[key]
    }
    changed = {key: values for key, values in sections.items() if values}
    return {**changed, **single, "method": settings["method"]}


@functools.cache
def _defaults() -> Any:
    return dataclasses.asdict(resolve.Config(task="", method=None))
