"""What a metric costs in trained weights."""

import numpy as np
import pandas as pd

from tf_adapters.analysis import pictures
from tf_adapters.analysis import study_runs
from tf_adapters.analysis.analysis import Analysis
from tf_adapters.analysis.analysis import register

COLUMNS = ("task", "method", "trained_weights", "mean", "error", "runs")
PERCENTILES = (20, 50, 80)


def means(runs, keys, split):
    """Returns a row of `COLUMNS` for each task, method and value of `keys`.

    `error` is the standard error of the mean over seeds, NaN for one.

    Args:
        runs: `DataFrame` of runs.
        keys: Columns, beside `task` and `method`, that tell models apart.
        split: Column of the metric.
    """
    rows = []
    groups = runs.groupby(["task", "method", *keys], sort=False, dropna=False)
    for (task, method, *_), group in groups:
        values = group[split]
        weights = int(group.trained_weights.iloc[0])
        rows.append(
            (task, method, weights, values.mean(), values.sem(), len(values))
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def percentiles(table, baseline):
    """Returns percentiles over tasks of the difference to a baseline.

    For each method and number of trained weights, of each task's mean less the
    task's baseline, in points (Houlsby et al. 2019, figures 1 and 3).

    Args:
        table: What `means` returns.
        baseline: Method that is at zero.
    """
    zero = table[table.method == baseline].set_index("task")["mean"]
    others = table[table.method != baseline]
    others = others.assign(
        difference=100 * (others["mean"] - others.task.map(zero))
    )
    rows = []
    for (method, weights), group in others.groupby(
        ["method", "trained_weights"]
    ):
        values = np.percentile(group.difference, PERCENTILES)
        rows.append((method, weights, len(group), *values))
    names = [f"p{p}" for p in PERCENTILES]
    return pd.DataFrame(
        rows, columns=["method", "trained_weights", "tasks", *names]
    )


@register("trade_off")
class TradeOff(Analysis):
    """A study's metric against the number of trained weights.

    A panel for each task, a line for each method with a point for each of its
    sizes; bars are the standard error over seeds (Houlsby et al. 2019, figures
    4 and 5; AdapterBias, figure 4). With `--baseline=full` one panel: the 20th,
    50th and 80th percentile over tasks of the difference to that method
    (Houlsby et al., figures 1 and 3).
    """

    reads = "study_dir"

    def add_flags(self, parser):
        parser.add_argument(
            "--sizes",
            default="",
            help="settings of the grid that make a model smaller or larger, "
            "with commas between: method.units,method.k",
        )
        parser.add_argument("--baseline", help="method at zero")
        parser.add_argument(
            "--split", choices=("validation", "test"), default="validation"
        )

    def table(self, options):
        keys = [key for key in options.sizes.split(",") if key]
        runs = study_runs.load_study_runs(
            options.folders[0], ("task", "method", *keys)
        )
        found = means(runs, keys, options.split)
        if options.baseline:
            found = percentiles(found, options.baseline)
            return found.assign(baseline=options.baseline)
        return found.assign(split=options.split)

    def draw(self, table):
        if "baseline" in table:
            return _draw_percentiles(table)
        tasks = list(dict.fromkeys(table.task))
        figure, axes = pictures.make_figure(columns=len(tasks))
        for axis, task in zip(axes.flat, tasks, strict=True):
            here = table[table.task == task]
            for (method, line), style in zip(
                here.groupby("method", sort=False),
                pictures.styles(),
                strict=False,
            ):
                line = line.sort_values("trained_weights")
                axis.errorbar(
                    line.trained_weights,
                    line["mean"],
                    line.error.fillna(0),
                    capsize=2,
                    label=method,
                    **style,
                )
            axis.set_xscale("symlog", linthresh=100)
            runs = f"{here.runs.min()} to {here.runs.max()} runs a point"
            pictures.describe(
                axis,
                "trained weights",
                f"{table.split[0]} metric",
                f"{task}: {runs}, bars: standard error",
            )
        return figure


def _draw_percentiles(table):
    figure, ((axes,),) = pictures.make_figure()
    for (method, line), style in zip(
        table.groupby("method", sort=False), pictures.styles(), strict=False
    ):
        line = line.sort_values("trained_weights")
        axes.plot(line.trained_weights, line.p50, label=method, **style)
        axes.fill_between(
            line.trained_weights,
            line.p20,
            line.p80,
            alpha=0.2,
            color=style["color"],
        )
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xscale("symlog", linthresh=100)
    tasks = table.tasks.max()
    pictures.describe(
        axes,
        "trained weights",
        f"points beside {table.baseline[0]}",
        f"20th, 50th and 80th percentile over {tasks} tasks",
    )
    return figure
