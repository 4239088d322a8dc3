"""How far results differ between seeds, learning rates, or iterations."""

import pandas as pd

from tf_adapters.analysis import pictures
from tf_adapters.analysis import study_runs
from tf_adapters.analysis.analysis import Analysis
from tf_adapters.analysis.analysis import register

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
COLUMNS = ("task", "box", "method", "runs", "min", "q1", "median", "q3", "max")


def boxes(runs, over, split):
    """Returns a row of `COLUMNS` for each task, value of `over` and method.

    Args:
        runs: `DataFrame` with `task`, `method`, `over` and `split`.
        over: Column whose values have a box each.
        split: Column of the metric.
    """
    rows = []
    for (task, box, method), group in runs.groupby(
        ["task", over, "method"], sort=False
    ):
        values = group[split]
        quantiles = values.quantile(QUANTILES)
        rows.append((task, box, method, len(values), *quantiles))
    return pd.DataFrame(rows, columns=COLUMNS)


@register("stability")
class Stability(Analysis):
    """Boxes of a study's results over its seeds, for each value of a setting.

    For each task, method and value of `--over`, for example
    `train.learning_rate` (He et al. 2021, figure 4) or `pretrain.steps` (Han et
    al. 2021, figures 4, 9 and 10); with `--over=method` the distribution over
    seeds alone (Han et al., figure 2). A box reaches from the first quartile to
    the third, its whiskers to the least and the largest value.
    """

    reads = "study_dir"

    def add_flags(self, parser):
        parser.add_argument(
            "--over", default="method", help="setting of the grid; `method`"
        )
        parser.add_argument(
            "--split", choices=("validation", "test"), default="validation"
        )

    def table(self, options):
        columns = ("task", "method", options.over)
        runs = study_runs.load_study_runs(options.folders[0], columns)
        if options.over == "method":
            runs = runs.assign(seeds="all seeds")
        over = "seeds" if options.over == "method" else options.over
        found = boxes(runs, over, options.split)
        return found.assign(over=options.over, split=options.split)

    def draw(self, table):
        tasks = list(dict.fromkeys(table.task))
        figure, axes = pictures.make_figure(columns=len(tasks))
        methods = list(dict.fromkeys(table.method))
        for axis, task in zip(axes.flat, tasks, strict=True):
            here = table[table.task == task]
            names = list(dict.fromkeys(here.box))
            for place, (method, style) in enumerate(
                zip(methods, pictures.styles(), strict=False)
            ):
                _draw_boxes(
                    axis,
                    here[here.method == method],
                    names,
                    (place + 0.5) / len(methods) - 0.5,
                    0.7 / len(methods),
                    style["color"],
                )
                axis.plot([], [], color=style["color"], label=method)
            axis.set_xticks(range(len(names)), map(str, names))
            over, split = table.over[0], table.split[0]
            seeds = f"{here.runs.min()} to {here.runs.max()} runs a box"
            label = seeds if over == "method" else f"{over} ({seeds})"
            pictures.describe(axis, label, f"{split} metric", task)
        return figure


def _draw_boxes(axes, rows, names, shift, width, colour):
    statistics = [
        {
            "whislo": row["min"],
            "q1": row["q1"],
            "med": row["median"],
            "q3": row["q3"],
            "whishi": row["max"],
        }
        for _, row in rows.iterrows()
    ]
    drawn = axes.bxp(
        statistics,
        positions=[names.index(box) + shift for box in rows.box],
        widths=width,
        showfliers=False,
        patch_artist=True,
        manage_ticks=False,
    )
    for box in drawn["boxes"]:
        box.set(facecolor=colour, alpha=0.4, edgecolor=colour)
    for median in drawn["medians"]:
        median.set(color="black")
