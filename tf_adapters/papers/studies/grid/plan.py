"""Lists the runs of a study, without training them."""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import itertools
import math
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.config import resolve
from tf_adapters.config import task as config_task
from tf_adapters.launch import planned_run
from tf_adapters.papers.studies.grid import blocks as study_blocks
from tf_adapters.papers.studies.grid import declaration
from tf_adapters.papers.studies.grid import declared_runs
from tf_adapters.papers.studies.grid import settings as study_settings

if TYPE_CHECKING:
    from pathlib import Path

    from tf_adapters.config.settings import Config
    from tf_adapters.launch.planned_run import Run
    from tf_adapters.papers.studies.grid.declaration import Study


# All runs are listed in memory, and each setting of a grid multiplies them.
_MOST_RUNS = 100_000


def load_study(
    path: Path, block: Any = None, flags: dict[str, Any] | None = None
) -> tuple[Any, list[Any]]:
    """Returns the `Study` in a YAML file and its list of `Run`s.

    Args:
        path: YAML file.
        block: The reduced form to apply, one of `blocks.BLOCKS`, or `None`.
            If the form drops a run, the paper's numbers for it are dropped too.
        flags: Dict of settings, nested or flat, that override `base` and
            `where`.

    Raises:
        ConfigError: If a key is unknown or set twice, or a run's settings are
            wrong. All runs are resolved before the first one starts.
    """
    try:
        study, blocks = declaration.read_study(path)
        _check_where_matches(study, study.where)
        if block and block not in blocks:
            raise ConfigError(
                f"--{block} needs a block `{block}`; it has none."
            )
        if study.expected or study.figures or study.claims:
            declared_runs.check_declared_runs(study, _expand(study))
        if block or flags:
            study = study_blocks.with_block(study, blocks.get(block), flags)
            study = dataclasses.replace(study, form=block)
            if block:
                _check_where_matches(study, blocks[block].where)
        runs = _expand(study, merge=bool(block))
        if block or flags:
            study = declared_runs.without_other_runs(study, runs)
    except ConfigError as error:
        raise ConfigError(f"Study {path}: {error}") from error
    return study, runs


def _check_where_matches(study: Study, entries: Any) -> None:
    points = [
        {**study.base, **study.overrides, **point} for point in _points(study)
    ]
    for when, _ in entries:
        if not any(study_settings.matches(when, point) for point in points):
            raise ConfigError(
                f"No run of the study matches the entry `when: {cut(when)}` of "
                "`where`. Correct it or leave it out."
            )


def _points(study: Study) -> Iterator[Any]:
    number = sum(
        math.prod(len(values) for values in grid.values())
        for grid in study.grids
    )
    if number > _MOST_RUNS:
        raise ConfigError(
            f"The study has {number:,} runs, more than {_MOST_RUNS:,}. Vary "
            "fewer settings at a time: `grid` may be a list of grids."
        )
    for grid in study.grids:
        for values in itertools.product(*grid.values()):
            yield dict(zip(grid, values, strict=True))


def _expand(study: Study, merge: bool = False) -> list[Any]:
    """Returns all runs of a study.

    A point of a grid is a dict with the settings of one run. If `merge` is
    true, a point that is in several grids gives only one run. Otherwise, such a
    point is an error.
    """
    runs = {}
    for point in _points(study):
        run = _make_run(study, point)
        if run.id in runs and not (merge and runs[run.id].point == run.point):
            raise ConfigError(
                f"Two points of the grid are the same run: {cut(run.point)} "
                f"and {cut(runs[run.id].point)}. Leave one of them out."
            )
        runs[run.id] = run
    return list(runs.values())


def load_forms(path: Path) -> tuple[Any, dict[str | None, Any]]:
    """Returns the `Study` in a YAML file and the runs of each of its forms.

    Declarations about the paper are not checked.

    Args:
        path: YAML file.

    Returns:
        `(study, forms)`. `forms` is a dict from the name of each reduced form,
        and from `None` for the complete study, to a list of `Run`.
    """
    try:
        study, blocks = declaration.read_study(path)
        forms: dict[str | None, Any] = {None: _expand(study)}
        for name, block in blocks.items():
            changed = study_blocks.with_block(study, block)
            forms[name] = _expand(changed, merge=True)
    except ConfigError as error:
        raise ConfigError(f"Study {path}: {error}") from error
    return study, forms


def _make_run(study: Study, point: Any) -> Run:
    settings = dict(study.base)
    for when, values in study.where:
        known = {**study.base, **study.overrides, **point}
        if study_settings.matches(when, known):
            study_settings.refuse_both(
                point, "`grid`", values, f"`where` for {when}"
            )
            settings.update(values)
    settings = {**settings, **study.overrides, **point}
    try:
        config = resolve.resolve_config(study_settings.nest(settings))
        metrics = metrics_of(config, study.report.metric)
    except ValueError as error:
        raise ConfigError(f"Run {cut(point)}: {error}") from error
    # A run folder stores absolute paths, and is recognized by them.
    absolute = resolve.with_absolute_paths(config)
    known = {**study_settings.as_dotted(resolve.to_dict(config)), **settings}
    name = planned_run.run_id(config)
    return planned_run.Run(name, point, absolute, metrics, known)


# Results can have these metrics in addition to the task's own: the mean over
# validations (He et al. 2021, table 6), the loss with `train.evaluate_loss`,
# and the averages over languages with `data.eval_languages`.
_OF_EVERY_TASK = ("mean_metric", "loss")
_OF_EVERY_TASK += ("transfer/all", "transfer/target", "transfer/distant")
# Prefixes of two more kinds of metrics: the score in one language, and values
# that a method reports, such as gates.
_FURTHER = ("transfer/", "method_report/")


def metrics_of(config: Config, name: str | None = None) -> dict[Any, Any]:
    """Returns a dict from each task of a run to its metric in the report.

    Args:
        config: `Config`.
        name: Name of a metric that all tasks have. `None` (default) for each
            task's first metric, even if another metric selects checkpoints.
    """
    metrics = planned_run.first_metrics(config)
    if name is None:
        return metrics
    for own in config_task.by_task(config).values():
        task = config_task.declared_task(own)
        known = (*task.metrics, *_OF_EVERY_TASK)
        if name not in known and not name.startswith(_FURTHER):
            raise ConfigError(
                f"`report.metric` must be one of task `{task.name}`: "
                f"{', '.join(known)}, transfer/<language>, "
                f"method_report/<name>. Received: {cut(name)}"
            )
    return dict.fromkeys(metrics, name)


def selecting_metric(config: Config, task: str) -> Any:
    """Returns the metric that selects checkpoints for one of a run's tasks."""
    own = config_task.by_task(config)[task]
    return config_task.declared_task(own).metrics[0]
