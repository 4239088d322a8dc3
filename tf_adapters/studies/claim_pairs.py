"""What a claim compares: pairs of runs, or of rows of a figure's table."""

import csv
import functools
import hashlib
import json
from pathlib import Path

import numpy as np

from tf_adapters.config import task as config_task
from tf_adapters.data.rows import splits
from tf_adapters.runs import predictions
from tf_adapters.studies import settings as study_settings
from tf_adapters.studies import statistics
from tf_adapters.tasks import languages

_AVERAGES = ("all", "target", "distant")


def run_folder(folder, row):
    """Returns the folder of a run, or of one of the tasks of its run.

    Args:
        folder: Path of the study.
        row: Dict from `report.run_rows`; its `folder`, if it has one, is
            where the run lies as seen from there.
    """
    path = Path(folder) / (row.get("folder") or row["run"])
    own = path / row["task"]
    return own if (own / "config.yaml").exists() else path


def match_runs(claim, runs, rows, select_over=()):
    """Returns the pairs of a claim: setting, higher row, lower row.

    Both rows of a pair have the same value of every key that the claim does
    not compare; its setting is all of these but the seed.

    Args:
        claim: `paper.Claim` of runs.
        runs: List of `Run`.
        rows: Dicts of finished runs, from `report.run_rows`.
        select_over: Keys of what was selected, which may differ.
    """
    settings = {run.id: run.settings for run in runs}
    compared = {*claim.higher, *claim.than, *select_over}
    keys = {
        run.id: [k for k in ("task", *run.point) if k not in compared]
        for run in runs
    }

    def side(wanted):
        wanted = {**(claim.where or {}), **wanted}
        return [
            row
            for row in rows
            if study_settings.matches(
                wanted, {**settings[row["run"]], "task": row["task"]}
            )
        ]

    lower = side(claim.than)
    found = []
    for high in side(claim.higher):
        for low in lower:
            shared = [k for k in keys[high["run"]] if k in keys[low["run"]]]
            if all(high[key] == low[key] for key in shared):
                # What one side alone has parts settings too.
                names = (*keys[high["run"]], *keys[low["run"]])
                rest = [
                    (key, high.get(key), low.get(key))
                    for key in dict.fromkeys(names)
                    if key != "seed"
                ]
                found.append((json.dumps(rest, default=str), high, low))
    return found


def predicted_pairs(matched, runs, folder, split):
    """Returns `statistics.Pair`s, or `None` if predictions are lacking.

    Sets of examples with equal targets are taken for one: those of all seeds,
    and of languages into which one text was translated.

    Args:
        matched: What `match_runs` returned.
        runs: List of `Run`.
        folder: Path of the study.
        split: `report.split`.
    """
    configs = {run.id: run.config for run in runs}
    load = functools.cache(predictions.load_predictions)
    pairs = []
    for setting, high, low in matched:
        parts = _parts(high, configs[high["run"]], split)
        for part, metric in parts:
            both = [load(run_folder(folder, row), part) for row in (high, low)]
            if None in both:
                return None
            first, second = (one.compared["target"] for one in both)
            if first != second:
                return None
            pairs.append(
                statistics.Pair(
                    (setting, part),
                    (high["task"], _digest(first)),
                    len(first),
                    both[0].resample(metric),
                    both[1].resample(metric),
                )
            )
        if not parts:
            return None
    return pairs


def _parts(row, config, split):
    """Returns the stored splits that a run's value is the mean of.

    Returns:
        List of pairs of a split's name and a metric; empty where the value is
        no metric of predictions.
    """
    metric = row["metric"]
    kind, _, name = metric.partition("/")
    if kind != "transfer":
        stored = metric not in ("mean_metric", "loss")
        return [(split, metric)] if stored else []
    task = splits.declared_task(config_task.by_task(config)[row["task"]])
    found = [
        key.removeprefix("transfer/")
        for key in row
        if key.startswith("transfer/")
        and key.removeprefix("transfer/") not in _AVERAGES
    ]
    if name in _AVERAGES:
        one_hot = dict(zip(found, np.eye(len(found)), strict=True))
        shares = languages.averages(one_hot, task.languages)[name]
        found = [one for one, share in zip(found, shares, strict=True) if share]
    else:
        found = [name]
    return [(f"transfer/{one}", task.metrics[0]) for one in found]


def _digest(targets):
    return hashlib.sha256(json.dumps(targets).encode()).hexdigest()


def figure_differences(claim, path, rows):
    """Returns the differences between rows of a figure's table.

    Pairs have equal values of the other columns that both sides share values
    of, but for measured numbers; where a cell is a run's folder, the run's
    point belongs to its row. Several rows of one side of a pair are averaged.

    Args:
        claim: `paper.Claim` of a figure.
        path: Path of its table, a CSV file.
        rows: Dicts of runs, from `report.run_rows`.

    Returns:
        List of differences, or a text: why there are none.
    """
    if not path.exists():
        return f"there is no table {path.parent.name}/{path.name}"
    with path.open(newline="", encoding="utf-8") as file:
        table = [_with_point(row, rows) for row in csv.DictReader(file)]
    asked = {**claim.higher, **claim.than, **(claim.where or {})}
    for column in (claim.value, *asked):
        if not any(column in row for row in table):
            return f"{path.name} has no column `{column}`"
    sides = [
        [row for row in table if _has({**(claim.where or {}), **wanted}, row)]
        for wanted in (claim.higher, claim.than)
    ]
    keys = _pair_columns(sides, {claim.value, *claim.higher, *claim.than})
    high, low = (_means(side, keys, claim.value) for side in sides)
    return [high[key] - low[key] for key in high if key in low] or (
        f"{path.name} has no pair of rows"
    )


def _with_point(row, rows):
    """Returns a row of a table, with the point of the run that it names."""
    names = {Path(value).name for value in row.values() if value}
    names |= {Path(value).parent.name for value in row.values() if value}
    for run in rows:
        if run["run"] in names:
            point = {k: str(v) for k, v in run.items() if v is not None}
            return {**{k: v for k, v in point.items() if k in POINT}, **row}
    return row


# Of a run that a table's row names, what pairs may agree in.
POINT = ("task", "seed", "method")


def _has(wanted, row):
    return all(
        any(
            _same(row.get(key, ""), one)
            for one in (value if isinstance(value, list) else [value])
        )
        for key, value in wanted.items()
    )


def _same(text, value):
    return text == str(value) or (
        _number(text) is not None and _number(text) == _number(str(value))
    )


def _number(text):
    try:
        return float(text)
    except ValueError:
        return None


def _pair_columns(sides, left_out):
    """Returns the columns in which both rows of a pair are to agree."""
    columns = dict.fromkeys(
        key for side in sides for row in side for key in row
    )
    return [
        column
        for column in columns
        if column not in left_out
        and not _is_measured(column, sides)
        and set.intersection(
            *({row.get(column, "") for row in side} for side in sides)
        )
    ]


def _is_measured(column, sides):
    """Whether a column holds numbers with decimals, as no key of a table."""
    values = [row.get(column, "") for side in sides for row in side]
    numbers = [_number(value) for value in values if value]
    return all(n is not None for n in numbers) and any(
        not n.is_integer() for n in numbers
    )


def _means(side, keys, value):
    groups = {}
    for row in side:
        number = _number(row[value])
        if number is not None and not np.isnan(number):
            key = tuple(row.get(k, "") for k in keys)
            groups.setdefault(key, []).append(number)
    return {key: float(np.mean(values)) for key, values in groups.items()}
