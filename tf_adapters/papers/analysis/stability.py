"""Shows how much results vary with seeds, learning rates or iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import pandas as pd

from tf_adapters.papers.analysis.support import pictures
from tf_adapters.papers.analysis.support import study_runs
from tf_adapters.papers.analysis.support.analysis import Analysis
from tf_adapters.papers.analysis.support.analysis import add_split
from tf_adapters.papers.analysis.support.analysis import names
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.report import drawing

if TYPE_CHECKING:
    import argparse


QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
COLUMNS = ("task", "panel", "box", "method", "runs")
COLUMNS += ("min", "q1", "median", "q3", "max", "quartile_range")


def boxes(runs: pd.DataFrame, over: Any, split: Any) -> pd.DataFrame:
    """Returns a `DataFrame` with `COLUMNS`, one row for each box of a box plot.

    A box has the runs with the same task, panel, value of `over`, and method.
    The value of runs without the setting `over` is `"none"`.

    Args:
        runs: `DataFrame` with `task`, `panel`, `method`, `over` and `split`.
        over: Column with a box for each of its values.
        split: Column of the metric.
    """
    settings = runs[over].astype(object)
    runs = runs.assign(**{over: settings.where(settings.notna(), "none")})
    rows = []
    for (task, panel, box, method), group in runs.groupby(
        ["task", "panel", over, "method"], sort=False
    ):
        values = group[split]
        quantiles = values.quantile(QUANTILES)
        facts = task, panel, box, method, len(values)
        quartiles = quantiles[0.75] - quantiles[0.25]
        rows.append((*facts, *quantiles, quartiles))
    return pd.DataFrame(rows, columns=COLUMNS)


@register("stability")
class Stability(Analysis):
    """Draws box plots of a study's results over seeds, by setting.

    There is a box for each task, method and value of `--over`, for example
    `train.learning_rate` (He et al. 2021, figure 4) or `pretrain.steps` (Han et
    al. 2021, figures 9 and 10). `--over=method` shows the distribution over all
    runs (Han et al., figures 2 and 4). A box extends from the first to the
    third quartile (`quartile_range` is its length), and whiskers to the
    smallest and largest value. There is a panel for each combination of values
    of the settings in `--panels`.
    """

    reads = "study_dir"

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--over", default="method", help="setting of the grid; `method`"
        )
        add_split(parser)
        parser.add_argument(
            "--panels",
            type=names,
            default=[],
            help="settings, separated by commas",
        )

    def table(self, options: Any) -> Any:
        panels = options.panels
        columns = ("task", "method", options.over, *panels)
        runs = study_runs.load_study_runs(options.folders[0], columns)
        runs = study_runs.with_value(runs, options.split, options.folders[0])
        words = runs[panels].astype(str).agg(", ".join, axis=1)
        runs = runs.assign(panel=words if panels else "")
        if options.over == "method":
            runs = runs.assign(all_runs="all runs")
        over = "all_runs" if options.over == "method" else options.over
        found = boxes(runs, over, options.split)
        # Settings are text, because claims take decimal numbers for results.
        setting = [f"{options.over} {box}" for box in found.box]
        metrics = dict(zip(runs.task, runs.metric, strict=True))
        return found.assign(
            over=options.over,
            split=options.split,
            metric=found.task.map(metrics),
            setting=setting,
        )

    def draw(self, table: Any) -> Any:
        panels = list(dict.fromkeys(zip(table.task, table.panel, strict=True)))
        columns = len(panels) if len(panels) < 5 else -(-len(panels) // 2)
        figure, axes = drawing.make_figure(-(-len(panels) // columns), columns)
        methods = list(dict.fromkeys(table.method))
        for axis, (task, panel) in zip(axes.flat, panels, strict=False):
            here = table[(table.task == task) & (table.panel == panel)]
            names = list(dict.fromkeys(here.box))
            for place, (method, style) in enumerate(
                zip(methods, drawing.styles(), strict=False)
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
            ticks = [str(name) for name in names]
            pictures.label_places(axis, range(len(ticks)), ticks)
            over = table.over[0]
            metric = f"{table.split[0]} {here.metric.iloc[0]}"
            least, most = here.runs.min(), here.runs.max()
            runs = str(least) if least == most else f"{least} to {most}"
            seeds = f"{runs} runs a box"
            name = pictures.in_words(over)
            label = seeds if over == "method" else f"{name} ({seeds})"
            title = f"{task}, {panel}" if panel else task
            outside = axis is axes[0, -1]
            drawing.label_axes(axis, label, metric, title, outside)
            if not outside:
                axis.get_legend().remove()
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        return figure


def _draw_boxes(
    axes: Any, rows: Any, names: Any, shift: Any, width: Any, color: Any
) -> None:
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
        box.set(facecolor=color, alpha=0.4, edgecolor=color)
    for median in drawn["medians"]:
        median.set(color="black")
