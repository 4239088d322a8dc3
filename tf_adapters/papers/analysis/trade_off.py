"""Plots a metric against the number of trained weights or another setting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import pandas as pd

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.papers.analysis.support import pictures
from tf_adapters.papers.analysis.support import study_runs
from tf_adapters.papers.analysis.support.analysis import Analysis
from tf_adapters.papers.analysis.support.analysis import names
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.report import drawing

if TYPE_CHECKING:
    import argparse

    from matplotlib.figure import Figure


COLUMNS = ("task", "method", "x", "mean", "error", "runs")
PERCENTILES = (20, 50, 80)
WEIGHTS = "trained_weights"


def count_without_head(runs: Any) -> Any:
    """Returns runs with the head's weights subtracted from `trained_weights`.

    With the head, a method would have different numbers of weights on tasks
    with different numbers of classes.
    """
    head = runs.get("head_weights", pd.Series(0, runs.index)).fillna(0)
    return runs.assign(trained_weights=runs.trained_weights - head)


def select(
    runs: pd.DataFrame, keys: Any, over: Sequence[Any] = ()
) -> pd.DataFrame:
    """Returns the runs with the settings that are best on validation.

    Args:
        runs: `DataFrame` of runs.
        keys: Columns that distinguish models, besides `task` and `method`.
        over: Columns to select over. For each task and model, only values with
            the most seeds compete, and the highest mean over seeds wins.
    """
    kept = []
    for _, group in _groups(runs, keys):
        candidates = [group]
        if over:
            candidates = [c for _, c in group.groupby(list(over), dropna=False)]
        kept.append(max(candidates, key=_rank))
    return pd.concat(kept)


def _rank(candidate: Any) -> tuple[int, Any]:
    # Reports of earlier versions lack `selection`.
    by = "selection" if "selection" in candidate else "validation"
    return len(candidate), candidate[by].mean()


def means_over_seeds(
    runs: pd.DataFrame, keys: Any, value: Any, x: Any = WEIGHTS
) -> pd.DataFrame:
    """Returns a row with `COLUMNS` for each task, method and value of `keys`.

    `error` is the standard error of the mean over seeds, NaN for one seed.

    Args:
        runs: `DataFrame` of runs.
        keys: Columns that distinguish models, besides `task` and `method`.
        value: Column of the metric.
        x: Column for the horizontal axis.
    """
    rows = []
    for (task, method, *_), group in _groups(runs, keys):
        values = group[value]
        place = group[x].iloc[0]
        rows.append(
            (task, method, place, values.mean(), values.sem(), len(values))
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def _groups(runs: Any, keys: Any) -> Any:
    keys = list(dict.fromkeys(["task", "method", *keys]))
    return runs.groupby(keys, sort=False, dropna=False)


def percentiles(table: Any, baseline: str) -> pd.DataFrame:
    """Returns percentiles, over tasks, of the difference from a baseline.

    The difference is the mean of a method on a task minus the mean of the
    baseline on this task, in points. There is a row for each method and value
    of the column `x` (Houlsby et al. 2019, figures 1 and 3).

    Args:
        table: Result of `means_over_seeds`.
        baseline: Name of the baseline's method.

    Raises:
        UserError: If the baseline has several points for a task, or no task has
            both the baseline and another method.
    """
    zero = table[table.method == baseline].set_index("task")["mean"]
    if not zero.index.is_unique:
        raise UserError(
            f"The baseline `{cut(baseline)}` has several points for a task. A "
            "baseline is a method with one size."
        )
    others = table[table.method != baseline]
    others = others.assign(
        difference=100 * (others["mean"] - others.task.map(zero))
    ).dropna(subset="difference")
    if others.empty:
        raise UserError(
            "No task has finished runs of both the baseline "
            f"`{cut(baseline)}` and another method. Methods of the study: "
            f"{', '.join(sorted(set(table.method.map(str))))}"
        )
    rows = []
    for (method, x), group in others.groupby(["method", "x"]):
        values = np.percentile(group.difference, PERCENTILES)
        rows.append((method, x, len(group), *values))
    columns = [f"p{p}" for p in PERCENTILES]
    return pd.DataFrame(rows, columns=["method", "x", "tasks", *columns])


@register("trade_off")
class TradeOff(Analysis):
    """Plots a study's metric against the number of trained weights.

    There is a panel for each task and a line for each method, with a point for
    each of its sizes. Bars are the standard error over seeds (Houlsby et al.
    2019, figures 4 and 5). `--x` replaces the number of weights by a setting of
    the grid, such as the number of training examples (AdapterBias, figure 4) or
    the deviation of the initial weights (Houlsby et al., figure 6 right). With
    `--baseline=full`, there is one panel with the 20th, 50th and 80th
    percentile, over tasks, of the difference from `full` (Houlsby et al.,
    figures 1 and 3). The head's weights do not count.
    """

    reads = "study_dir"

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        settings = "settings of the grid, separated by commas, "
        parser.add_argument(
            "--sizes",
            type=names,
            default=[],
            help=settings + "that make a model smaller or larger: "
            "method.units,method.k",
        )
        parser.add_argument(
            "--x", default=WEIGHTS, help="setting of the grid; trained_weights"
        )
        parser.add_argument(
            "--lines",
            default="method",
            help="setting of the grid with a line for each value; method",
        )
        parser.add_argument(
            "--select_over",
            type=names,
            default=[],
            help=settings
            + "of which each point uses the best value on validation: "
            "train.learning_rate,train.epochs",
        )
        parser.add_argument("--baseline", help="method at zero")
        parser.add_argument(
            "--metric", help="name of a metric; the one of the study's table"
        )
        parser.add_argument(
            "--split",
            choices=("validation", "test"),
            help="the one of the study's table",
        )

    def table(self, options: Any) -> Any:
        sizes, over = options.sizes, options.select_over
        (folder,) = options.folders
        x = [] if options.x == WEIGHTS else [options.x]
        needed = ("task", *sizes, *over, *x, options.lines)
        runs = count_without_head(study_runs.load_study_runs(folder, needed))
        runs = runs.assign(method=runs[options.lines])
        split = options.split or _split(folder)
        value = f"{split}/{options.metric}" if options.metric else split
        runs = study_runs.with_value(runs, value, folder)
        keys = [*sizes, *x]
        chosen = select(runs, keys, over)
        study_runs.check_differ_in_seed(
            chosen, list(dict.fromkeys(["task", "method", *keys]))
        )
        others = chosen[chosen.method != options.baseline]
        _check_numbers(others, x)
        found = means_over_seeds(chosen, keys, value, options.x)
        if options.baseline:
            found = percentiles(found, options.baseline)
            found = found.assign(baseline=options.baseline)
        known = set(runs.metric) if options.metric is None else {options.metric}
        metric = known.pop() if len(known) == 1 else "metric"
        return found.assign(over=options.x, of=f"{split} {metric}")

    def draw(self, table: Any) -> Any:
        if "baseline" in table:
            return _draw_percentiles(table)
        methods = list(dict.fromkeys(table.method))
        styles = dict(zip(methods, drawing.styles(), strict=False))
        figure, panels = pictures.make_panels(table, "task")
        for axis, task, here in panels:
            for method, line in here.groupby("method", sort=False):
                line = line.sort_values("x")
                axis.errorbar(
                    line.x,
                    line["mean"],
                    line.error,
                    capsize=2,
                    label=method,
                    **styles[method],
                )
            _label(axis, here, here.of.iloc[0], f"{task}{_bars(here.runs)}")
        return figure


def _check_numbers(runs: pd.DataFrame, columns: list[str]) -> None:
    """Raises a `UserError` if a column for the x-axis has no or other values.

    Runs without the setting would be missing in the picture.
    """
    for name in columns:
        lacking = sorted(set(map(str, runs.method[runs[name].isna()])))
        if lacking:
            raise UserError(
                f"--x={name} is no setting of all methods: {cut(lacking)} have "
                "no place on the axis. Give --x=trained_weights, or leave them "
                "out by the `runs` of the study's figure."
            )
        try:
            pd.to_numeric(runs[name])
        except (TypeError, ValueError):
            raise UserError(
                f"--x={name} has no numbers for an axis. Its values: "
                f"{cut(sorted(set(map(str, runs[name]))))}"
            ) from None


def _split(folder: Path) -> Any:
    """Returns the split of the metric in a study's table."""
    path = Path(folder) / "table.csv"
    return pd.read_csv(path).split[0] if path.exists() else "validation"


def _bars(runs: Any) -> str:
    """Returns a note for the title on the number of runs per point."""
    if runs.max() == 1:
        return ""
    least, most = runs.min(), runs.max()
    number = most if least == most else f"{least} to {most}"
    return f": {number} runs a point, bars: standard error"


def _label(axes: Any, table: Any, y: Any, title: Any) -> None:
    positive = table.x[table.x > 0]
    axes.set_xscale("symlog", linthresh=positive.min() if len(positive) else 1)
    over = table.over.iloc[0]
    if over != WEIGHTS:
        values = sorted(set(table.x))
        labels = [f"{value:g}" for value in values]
        pictures.label_places(axes, values, labels)
        axes.set_xticks([], minor=True)
    drawing.label_axes(
        axes, pictures.in_words(over), y, title, legend_outside=True
    )


def _draw_percentiles(table: Any) -> Figure:
    figure, ((axes,),) = drawing.make_figure()
    methods = table.groupby("method", sort=False)
    for method, line, style in pictures.styled(methods):
        line = line.sort_values("x")
        axes.plot(line.x, line.p50, label=method, **style)
        axes.fill_between(
            line.x,
            line.p20,
            line.p80,
            alpha=0.2,
            color=style["color"],
        )
    tasks = table.tasks.max()
    _label(
        axes,
        table,
        f"{table.of[0]}, points above {table.baseline[0]}",
        f"20th, 50th and 80th percentile over {tasks} tasks",
    )
    # Drawn last: on a linear scale, it would fix the limits.
    axes.axhline(0, color="black", linewidth=0.8)
    return figure
