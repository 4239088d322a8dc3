"""Plans the runs that train a fusion's members, and names their folder."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import hashlib
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import methods
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import presets
from tf_adapters.config import resolve
from tf_adapters.config.data_settings import DataConfig
from tf_adapters.launch import planned_run

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.launch.planned_run import Run


def trains_members(config: Config) -> bool:
    """Returns whether a run is a fusion that first trains its members."""
    is_fusion = isinstance(config.method, methods.Fusion)
    return bool(
        is_fusion and not config.method.adapters and config.members.tasks
    )


def plan_members(config: Config) -> list[Run]:
    """Returns a list of the runs that train the members of a fusion.

    There is one run for each task in `members.tasks`, named after the task. If
    the members' method trains all tasks together (MT-A), there is a single run
    for them, named "multitask".

    Args:
        config: `Config` of a fusion that does not name its adapters.

    Raises:
        ConfigError: If a task is named twice or a setting is wrong.
    """
    tasks = config.members.tasks
    if len(set(tasks)) < len(tasks):
        raise ConfigError(
            f"`members.tasks` names a task twice: {', '.join(tasks)}."
        )
    settings = config.members.settings or {}
    if presets.preset_name([settings]) == "multitask":
        together = {"method": {"name": "multitask", "tasks": list(tasks)}}
        return [_planned(config, "multitask", together)]
    return [_planned(config, task, {"task": task}) for task in tasks]


def _planned(config: Config, name: str, layer: dict[str, Any]) -> Run:
    data = dataclasses.asdict(config.data)
    if name != config.task:
        data.update(task_file=None, eval_languages=(), **_no_table())
    shared = {
        "encoder": config.encoder,
        "quantize": config.quantize,
        "seed": config.seed,
        "backend": config.backend,
        "distribution_strategy": config.distribution_strategy,
        "tpu": config.tpu,
        "data": data,
        "train": {
            "precision": config.train.precision,
            "jit_compile": config.train.jit_compile,
            "deterministic": config.train.deterministic,
        },
    }
    try:
        member = resolve.resolve_config(
            shared, config.members.settings or {}, layer
        )
    except ConfigError as error:
        raise ConfigError(f"`members`, `{name}`: {error}") from error
    metrics = planned_run.first_metrics(member)
    member = resolve.with_absolute_paths(member)
    return planned_run.Run(name, {}, member, metrics)


def _no_table() -> dict[str, Any]:
    """Returns default values for the settings that describe a table."""
    usual = DataConfig()
    names = ("file", "validation_file", "test_file", "text", "label", "head")
    return {name: getattr(usual, name) for name in names}


def digest(runs: Sequence[Run]) -> str:
    """Returns a hash of the settings that all members of a fusion share.

    `runs` are the runs that train the members. The hash is the name of the
    folder that contains these runs.
    """
    settings = resolve.to_dict(runs[0].config)
    data = {
        **settings["data"],
        "task_file": None,
        "eval_languages": [],
        **_no_table(),
    }
    text = planned_run.identity({**settings, "task": "", "data": data})
    return hashlib.sha256(text.encode()).hexdigest()[:10]
