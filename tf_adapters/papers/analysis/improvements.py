"""Counts the tasks on which a method is better than a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import pandas as pd

from tf_adapters.common.errors import UserError
from tf_adapters.papers.analysis.support import study_runs
from tf_adapters.papers.analysis.support.analysis import Analysis
from tf_adapters.papers.analysis.support.analysis import add_split
from tf_adapters.papers.analysis.support.analysis import names
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.report import drawing

if TYPE_CHECKING:
    import argparse


COLUMNS = ("task", "method", "baseline", "difference", "change")
_ARROWS = {"up": "↗", "down": "↘", "same": "→"}


def improvements_of_means(
    means: Any,
    methods: Sequence[str],
    baselines: Sequence[str],
    threshold: float,
) -> pd.DataFrame:
    """Compares methods with baselines on each task.

    Returns a `DataFrame` with `COLUMNS`.

    Args:
        means: Dict from `(task, method)` to a mean, in points.
        methods: Names of methods.
        baselines: Names of the methods to compare `methods` with.
        threshold: Largest difference, in points, that counts as no change.
    """
    rows = []
    for task in dict.fromkeys(task for task, _ in means):
        for method in methods:
            for baseline in baselines:
                if {(task, method), (task, baseline)} <= set(means):
                    difference = means[task, method] - means[task, baseline]
                    change = _change(difference, threshold)
                    rows.append((task, method, baseline, difference, change))
    return pd.DataFrame(rows, columns=COLUMNS)


def _change(difference: Any, threshold: float) -> str:
    if abs(difference) <= threshold:
        return "same"
    return "up" if difference > 0 else "down"


def improved(table: Any) -> dict[Any, str]:
    """Counts the tasks on which a method improves on a baseline.

    Returns a dict from `(method, baseline)` to a string such as "3/9", which
    means 3 of 9 tasks.
    """
    groups = table.groupby(["method", "baseline"], sort=False).change
    return {
        pair: f"{(change == 'up').sum()}/{len(change)}"
        for pair, change in groups
    }


@register("improvements")
class Improvements(Analysis):
    """Compares methods with baselines, task by task, with arrows.

    Compares each of `--methods` with each of `--baselines` by the study's
    metric, averaged over seeds. The arrow points up if the method is better by
    more than `--threshold` points, down if it is worse by more, and is flat
    otherwise. The last row counts the improved tasks (Pfeiffer et al. 2021,
    table 2).
    """

    reads = "study_dir"

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--methods",
            type=names,
            default="fusion,fusion_multitask",
            help="separated by commas; fusion,fusion_multitask",
        )
        parser.add_argument(
            "--baselines",
            type=names,
            default="pfeiffer,multitask",
            help="separated by commas; pfeiffer,multitask",
        )
        parser.add_argument(
            "--threshold", type=float, default=0.3, help="points; 0.3"
        )
        add_split(parser)

    def table(self, options: Any) -> pd.DataFrame:
        runs = study_runs.load_study_runs(
            options.folders[0], ("task", "method")
        )
        wanted = [*options.methods, *options.baselines]
        runs = study_runs.with_value(runs, options.split, options.folders[0])
        study_runs.check_differ_in_seed(
            runs[runs.method.isin(wanted)], ("task", "method")
        )
        means = runs.groupby(["task", "method"], sort=False)[options.split]
        found = improvements_of_means(
            dict(100 * means.mean()),
            options.methods,
            options.baselines,
            options.threshold,
        )
        if found.empty:
            raise UserError(
                "No task has finished runs of both a method and a baseline. "
                f"Methods of the study: {', '.join(sorted(set(runs.method)))}"
            )
        return found

    def draw(self, table: Any) -> Any:
        pairs, tasks = improved(table), list(dict.fromkeys(table.task))
        cells = table.set_index(["task", "method", "baseline"])
        lines = [
            [_cell(cells, (task, *pair)) for pair in pairs] for task in tasks
        ]
        figure, ((axes,),) = drawing.make_figure(
            width=2 + 1.9 * len(pairs), height=0.8 + 0.25 * len(tasks)
        )
        axes.axis("off")
        drawn = axes.table(
            cellText=[*lines, list(pairs.values())],
            rowLabels=[*tasks, "improved"],
            colLabels=[f"{method}\nagainst {base}" for method, base in pairs],
            cellLoc="center",
            bbox=(0.15, 0, 0.85, 1),
        )
        drawn.auto_set_font_size(False)
        drawn.set_fontsize(8)
        for (row, _), cell in drawn.get_celld().items():
            cell.set_height(0.1 if row == 0 else 0.05)
        return figure


def _cell(cells: Any, key: Any) -> str:
    if key not in cells.index:
        return ""
    cell = cells.loc[key]
    # Adding 0 removes the sign of a negative zero.
    return f"{_ARROWS[cell.change]} {round(cell.difference, 1) + 0:+.1f}"
