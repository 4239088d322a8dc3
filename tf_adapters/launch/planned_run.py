"""A run before it starts: its settings, and the folder that they name."""

import dataclasses
import functools
import hashlib
import json
import re

from tf_adapters.config import resolve
from tf_adapters.config import settings as config_settings
from tf_adapters.config import task as config_task
from tf_adapters.data.rows import splits


@dataclasses.dataclass(frozen=True)
class Run:
    """A run that is planned.

    Attributes:
        id: Name of its folder: task, method, seed, and a hash of `config`.
        point: Dict from a study's keys to this run's values.
        config: `Config`.
        metrics: Dict from each of the run's tasks to the name of the metric
            that is shown.
        settings: Dict from each setting to its value, dotted; those that a
            study sets are as it writes them.
    """

    id: str
    point: dict
    config: resolve.Config
    metrics: dict
    settings: dict = dataclasses.field(default_factory=dict)

    @property
    def metric(self):
        """Name of the metric that selects the run's best weights."""
        if len(self.metrics) > 1:
            return "mean"
        return next(iter(self.metrics.values()))


def first_metrics(config):
    """Returns a dict from each task of a run to the first of its metrics.

    That is the task's own first one, whatever metric selects checkpoints.

    Args:
        config: `Config`.
    """
    return {
        name: splits.declared_task(_unselected(own)).metrics[0]
        for name, own in config_task.by_task(config).items()
    }


def _unselected(config):
    """Returns a configuration whose task has its own first metric first."""
    train = dataclasses.replace(config.train, select_by=None)
    return dataclasses.replace(config, train=train)


def identity(settings):
    """Returns text that is equal for configurations of the same run.

    Where data and TPU are is left out: the result holds a fingerprint of what
    the data are.

    Args:
        settings: Nested dict, from `config.to_dict` or a `config.yaml`.
    """
    elsewhere = config_settings.ELSEWHERE
    data = settings.get("data", {})
    data = {k: v for k, v in data.items() if f"data.{k}" not in elsewhere}
    rest = {k: v for k, v in settings.items() if k not in elsewhere}
    return json.dumps({**rest, "data": data}, sort_keys=True)


def run_id(config):
    """Returns the name of the folder of a configuration's run."""
    settings = resolve.to_dict(config)
    # A setting that is new in a later version does not change old ids.
    text = identity(_without_defaults(settings))
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    name = f"{config.task}-{settings['method']['name']}-seed{config.seed}"
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)}-{digest}"


def _without_defaults(settings):
    """Returns settings without those, outside `method`, that are defaults."""
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
def _defaults():
    return dataclasses.asdict(resolve.Config(task="", method=None))
