"""Determines a run's task from its settings.

A task is given by its name, by a task file or by a table of data. Several tasks
are given by their names.
"""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses
import os
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import tasks
from tf_adapters.common.dataclass_config import merge
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.tasks.table_task import name_of_table
from tf_adapters.tasks.task_file import load_task_file

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config


def with_task_of_file(
    layer: dict[str, Any], earlier: dict[str, Any]
) -> dict[str, Any]:
    """Makes the settings of the task consistent in one layer of settings.

    The task is set by `task`, by `data.task_file` or by `data.file` (a table).
    If the layer sets one of these, the returned layer overrides all three
    settings of earlier layers.

    Args:
        layer: Nested dict of settings.
        earlier: Nested dict, all earlier layers combined.

    Raises:
        ConfigError: If the layer sets two tasks, or if `task` is a mapping of
            settings instead of a name. A name in a later layer would silently
            replace such a mapping.
    """
    if not isinstance(layer.get("task"), str | None):
        raise ConfigError(
            "`task` is a name and has no settings: metrics, labels and fields "
            "of your own task are set in its task file, and `train.select_by` "
            "chooses the metric that selects the weights. Received: "
            f"task={layer['task']!r:.200}"
        )
    data = layer.get("data")
    data = data if isinstance(data, dict) else {}
    file, table = data.get("task_file"), data.get("file")
    if isinstance(file, str) and isinstance(table, str):
        raise ConfigError(
            f"Both a task file, {cut(file)}, and a table, {cut(table)}, are "
            "named. Give --task_file or --data."
        )
    if isinstance(file, str):
        path = os.path.expanduser(file)
        name = load_task_file(path, check_files=False).name
        return _named(layer, f"`data.task_file` {file}", name, "file")
    if isinstance(table, str):
        name = name_of_table(table)
        return _named(layer, f"`data.file` {table}", name, "task_file")
    if "task" in layer and layer["task"] != earlier.get("task"):
        return merge({"data": {"task_file": None, "file": None}}, layer)
    return layer


def _named(
    layer: dict[str, Any], what: str, name: str, other: Any
) -> dict[str, Any]:
    """Sets `task` in a layer of settings that has a task file or a table.

    Args:
        layer: Nested dict of settings.
        what: Name and value of the setting that defines the task, for errors.
        name: Name of the task.
        other: `"file"` or `"task_file"`: the setting in `data` that does not
            define the task. It is set to `None`.
    """
    if layer.get("task", name) != name:
        raise ConfigError(
            f"{what} defines task `{cut(name)}`, but `task` is "
            f"`{cut(layer['task'])}`. Give one of the two."
        )
    return merge({"data": {other: None}}, {**layer, "task": name})


def with_last_file(layers: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keeps only the last task file that layers of settings name.

    In earlier layers, `data.task_file` is set to `None`. Earlier files may no
    longer exist: a run's configuration has the original path, and the command
    line can have a new path.
    """
    layers = list(layers)
    naming = [
        place
        for place, layer in enumerate(layers)
        if isinstance(layer.get("data"), dict)
        and isinstance(layer["data"].get("task_file"), str)
    ]
    for place in naming[:-1]:
        data = {**layers[place]["data"], "task_file": None}
        layers[place] = {**layers[place], "data": data}
    return layers


def with_name_of_tasks(merged: dict[str, Any]) -> dict[str, Any]:
    """Sets `task` to `"a+b"` in the settings of a run of several tasks.

    Args:
        merged: Nested dict of settings, combined from the preset, the
            configuration file and the flags.

    Raises:
        ConfigError: If the method and the tasks do not match, or both one task
            and several are set.
    """
    method = merged["method"]
    names = method.get("tasks") or []
    if method["name"] != "multitask":
        if names:
            raise ConfigError(
                "Only method `multitask` trains several tasks together. "
                f"Received: the tasks {cut(names)} with method "
                f"`{cut(method['name'])}`. Give --task, or --method=multitask."
            )
        return merged
    are_names = isinstance(names, list | tuple) and all(
        isinstance(name, str) for name in names
    )
    if not are_names or len(set(names)) < max(2, len(names)):
        raise ConfigError(
            "Method `multitask` trains two tasks or more together, each named "
            f"once: --tasks=a,b. Received: {cut(names)}"
        )
    name = "+".join(names)
    if merged.get("task", name) != name:
        raise ConfigError(
            f"Both one task, `{cut(merged['task'])}`, and several, "
            f"`{cut(name)}`, are named. Give --task or --tasks."
        )
    return {**merged, "task": name}


def declared_task(config: Config, check_files: bool = False) -> Any:
    """Returns the task that a configuration names, without reading its data.

    Args:
        config: `Config`. Its `task`, `data` and `train.select_by` are used.
        check_files: Whether the tables, or the data files of a task file, must
            exist. Defaults to `False`.

    Raises:
        ConfigError: If the task does not have the metric `train.select_by`.
    """
    if config.data.task_file:
        path = os.path.expanduser(config.data.task_file)
        task = load_task_file(path, check_files)
    elif config.data.file:
        task = tasks.task_of_table(config.task, config.data, check_files)
    else:
        task = tasks.get(config.task)
    return _selected_by(task, config.train.select_by)


def _selected_by(task: Any, metric: Any) -> Any:
    """Returns a copy of a task that has `metric` as its first metric.

    The first metric selects the best weights. If `metric` is `None`, the task
    is returned unchanged.
    """
    if metric is None:
        return task
    if metric not in task.kind.metrics:
        raise ConfigError(
            f"`train.select_by`: task `{task.name}` can be measured by "
            f"{', '.join(task.kind.metrics)}. Received: {cut(metric)}"
        )
    others = tuple(name for name in task.metrics if name != metric)
    return dataclasses.replace(task, metrics=(metric, *others))


def by_task(config: Config) -> dict[Any, Config]:
    """Returns a dict from each task's name to a `Config` for this task only."""
    method = config.method
    if isinstance(method, dict):  # Not built yet.
        names = method.get("tasks")
    else:
        names = method.tasks
    return {
        name: dataclasses.replace(config, task=name)
        for name in names or (config.task,)
    }
