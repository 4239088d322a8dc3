"""Finds the pairs of runs that a claim compares."""

from __future__ import annotations

import collections
from collections.abc import Sequence
import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.common.text_files import hash_of_json
from tf_adapters.config import task as config_task
from tf_adapters.papers.studies.claims import statistics
from tf_adapters.papers.studies.claims.sampled_metrics import sampled_metric
from tf_adapters.papers.studies.grid import settings as study_settings
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import predictions
from tf_adapters.tasks import languages

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.launch.planned_run import Run
    from tf_adapters.papers.studies.grid.claim import Claim


def folder_of_row(folder: Path, row: dict[str, Any]) -> Path:
    """Returns the folder of a run, or of one task in a run with several tasks.

    Args:
        folder: Path of the study's folder.
        row: Dict from `report.run_rows`. Its `folder`, if present, is relative
            to the study's folder.
    """
    path = Path(folder) / (row.get("folder") or row["run"])
    return earlier_runs.folder_of_task(path, row["task"])


def match_runs(
    claim: Claim,
    runs: Sequence[Run],
    rows: Any,
    select_over: Sequence[Any] = (),
) -> list[Any]:
    """Returns the pairs of runs that a claim compares.

    A pair is a tuple `(setting, higher, lower)` with the rows of a run on each
    side. Both rows have the same value for every key that both runs have and
    the claim does not compare. `setting` is a JSON string of the values that
    are not compared, except the seed.

    Args:
        claim: `Claim` about runs.
        runs: List of `Run`.
        rows: Dicts of finished runs, from `report.run_rows`.
        select_over: Keys that the study selects over, whose values may differ.
    """
    compared = {*claim.higher, *claim.than, *select_over}
    keys = {
        run.id: tuple(k for k in ("task", *run.point) if k not in compared)
        for run in runs
    }
    lower = collections.defaultdict(list)
    for row in side_rows(claim, claim.than, runs, rows):
        lower[keys[row["run"]]].append(row)
    index = functools.cache(lambda own, shared: _index(lower[own], shared))
    found = []
    for high in side_rows(claim, claim.higher, runs, rows):
        for own in lower:
            names = keys[high["run"]]
            shared = tuple(key for key in names if key in own)
            found += [
                (_setting(names, own, high, low), high, low)
                for low in index(own, shared)[_values(high, shared)]
            ]
    return found


def side_rows(claim: Any, wanted: Any, runs: Any, rows: Any) -> list[Any]:
    settings = {run.id: run.settings for run in runs}
    wanted = {**(claim.where or {}), **wanted}
    return [
        row
        for row in rows
        if study_settings.matches(
            wanted, {**settings[row["run"]], "task": row["task"]}
        )
    ]


def _index(rows: Any, keys: Any) -> Any:
    index = collections.defaultdict(list)
    for row in rows:
        index[_values(row, keys)].append(row)
    return index


def _values(row: Any, keys: Any) -> Any:
    return json.dumps([row[key] for key in keys], default=str)


def _setting(names: Any, others: Any, high: Any, low: Any) -> Any:
    """Returns a JSON string that identifies a pair of runs except for the seed.

    It has the values of both rows `high` and `low` for the keys `names`, which
    identify the first run, and `others`, which identify the second.
    """
    keys = [key for key in dict.fromkeys((*names, *others)) if key != "seed"]
    values = [[key, high.get(key), low.get(key)] for key in keys]
    return json.dumps(values, default=str)


def predicted_pairs(
    matched: Any, runs: Sequence[Run], folder: Path, split: Any
) -> list[Any] | None:
    """Returns a `statistics.Pair` for each pair of runs and set of examples.

    Returns `None` if predictions are missing, if the two runs of a pair have
    different targets, or if a metric is not computed from predictions. Two test
    sets count as the same set if their targets are equal, such as the test sets
    of two seeds, or a test set and its translation.

    Args:
        matched: Result of `match_runs`.
        runs: List of `Run`.
        folder: Path of the study's folder.
        split: The study's `report.split`, such as `"test"`.
    """
    by_id = {run.id: run for run in runs}
    load = functools.cache(predictions.load_predictions)
    pairs = []
    for setting, high, low in matched:
        parts = _parts(high, by_id[high["run"]].config, split)
        sample = _sample(setting, high, low, by_id)
        for part, metric in parts:
            found = [
                load(folder_of_row(folder, row), part) for row in (high, low)
            ]
            both = [one for one in found if one is not None]
            if len(both) < len(found):
                return None
            first, second = (one.compared["target"] for one in both)
            if first != second:
                return None
            pairs.append(
                statistics.Pair(
                    (setting, part),
                    (high["task"], hash_of_json(first)),
                    len(first),
                    sampled_metric(both[0], metric),
                    sampled_metric(both[1], metric),
                    **sample,
                )
            )
        if not parts:
            return None
    return pairs


def differences(matched: Any, runs: Sequence[Run], split: Any) -> list[Any]:
    """Returns a `statistics.Difference` for each pair of runs.

    Args:
        matched: Result of `match_runs`.
        runs: List of `Run`.
        split: The study's `report.split`, such as `"test"`.
    """
    by_id = {run.id: run for run in runs}
    return [
        statistics.Difference(
            high[split] - low[split],
            setting,
            **_sample(setting, high, low, by_id),
        )
        for setting, high, low in matched
    ]


def _sample(setting: Any, high: Any, low: Any, by_id: Any) -> dict[str, Any]:
    """Returns a dict with the `group` and `sample` of a `statistics.Pair`.

    If only one side has seeds in the grid, all its runs are compared with the
    same run of the other side. Then their differences vary together.
    """
    seeds = tuple(row["seed"] for row in (high, low) if "seed" in row)
    return {
        "group": _group(setting, by_id[high["run"]], by_id[low["run"]]),
        "sample": seeds if len(seeds) > 1 else (),
    }


def _group(setting: Any, high: Any, low: Any) -> Any:
    """Returns the same string for all settings measured on the same runs.

    Such settings differ in values that only one side has (several adapter sizes
    compared with one baseline), or in tasks that one run trained together.
    """
    several = any(len(run.metrics) > 1 for run in (high, low))
    return json.dumps(
        [
            [key, above, below]
            for key, above, below in json.loads(setting)
            if above == below and not (several and key == "task")
        ]
    )


def _parts(row: Any, config: Config, split: Any) -> list[Any]:
    """Returns the splits whose predictions give the metric of a run's row.

    Returns:
        List of pairs of a split's name and a metric. The value in the row is
        the mean of these metrics. The list is empty if the value cannot be
        computed from predictions.
    """
    metric = row["metric"]
    kind, _, name = metric.partition("/")
    if kind != "transfer":
        stored = metric not in ("mean_metric", "loss")
        stored = stored and kind != "method_report"
        return [(split, metric)] if stored else []
    own = config_task.by_task(config)[row["task"]]
    task: Any = config_task.declared_task(own)
    found = [
        key.removeprefix("transfer/")
        for key in row
        if key.startswith("transfer/")
        and key.removeprefix("transfer/") not in languages.AVERAGES
    ]
    if name in languages.AVERAGES:
        one_hot: Any = dict(zip(found, np.eye(len(found)), strict=True))
        shares: Any = languages.averages(one_hot, task.languages)[name]
        found = [one for one, share in zip(found, shares, strict=True) if share]
    else:
        found = [name]
    return [(f"transfer/{one}", task.metrics[0]) for one in found]
