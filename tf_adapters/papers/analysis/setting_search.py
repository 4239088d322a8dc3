"""Compares the values of a method's settings, one setting at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import pandas as pd

from tf_adapters.common.errors import UserError
from tf_adapters.papers.analysis.support import pictures
from tf_adapters.papers.analysis.support import study_runs
from tf_adapters.papers.analysis.support.analysis import Analysis
from tf_adapters.papers.analysis.support.analysis import add_split
from tf_adapters.papers.analysis.support.analysis import names
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.report import drawing

if TYPE_CHECKING:
    import argparse


COLUMNS = ("task", "panel", "setting", "x", "score", "error", "runs")


def score_settings(
    runs: pd.DataFrame, panels: Sequence[str], x: Any, split: Any
) -> pd.DataFrame:
    """Returns a table with `COLUMNS`, one row for each point in the picture.

    A panel varies one setting. It shows the runs in which each of the other
    settings has its most frequent value.

    Args:
        runs: `DataFrame` with `task`, the panels' settings, `x` and `split`.
        panels: Names of settings.
        x: Column for the horizontal axis.
        split: Column of the metric.
    """
    usual = {panel: runs[panel].mode().iloc[0] for panel in panels}
    rows = []
    for panel in panels:
        others = [key for key in panels if key != panel]
        here = runs
        for key in others:
            here = here[here[key] == usual[key]]
        groups = here.groupby(["task", panel, x], sort=False)[split]
        for (task, setting, place), values in groups:
            numbers = 100 * values.mean(), 100 * values.sem(), len(values)
            rows.append((task, panel, str(setting), place, *numbers))
    return pd.DataFrame(rows, columns=COLUMNS)


@register("setting_search")
class SettingSearch(Analysis):
    """Plots a study's metric for each value of several settings, one at a time.

    There is a panel for each task and each setting in `--panels`, with a line
    for each value of the setting. The other settings have their most frequent
    values (Pfeiffer et al. 2021, appendix A.2, figures 7 to 9). `--x` is the
    setting on the horizontal axis. `--reference` names a method whose mean is
    drawn as a horizontal line.
    """

    reads = "study_dir"

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--panels",
            type=names,
            required=True,
            help="settings, separated by commas",
        )
        parser.add_argument(
            "--x", required=True, help="setting on the horizontal axis"
        )
        parser.add_argument("--reference", help="method of a line across")
        add_split(parser)

    def table(self, options: Any) -> Any:
        folder, panels = options.folders[0], options.panels
        runs = study_runs.load_study_runs(folder, ("task", "method"))
        runs = study_runs.with_value(runs, options.split, folder)
        reference = runs.method == options.reference
        if reference.all():
            raise UserError(
                f"All finished runs in {folder} are of `{options.reference}`, "
                "so there is nothing to compare with it. Train runs of another "
                "method, or leave out --reference."
            )
        searched = _with_settings(
            runs[~reference], folder, [*panels, options.x]
        )
        found = score_settings(searched, panels, options.x, options.split)
        found = found.assign(of=options.x, split=options.split)
        if options.reference is None:
            return found
        if not reference.any():
            raise UserError(
                f"No finished run of `{options.reference}`. Methods of the "
                f"study: {', '.join(sorted(set(runs.method)))}"
            )
        level = 100 * runs[reference].groupby("task")[options.split].mean()
        return found.assign(
            reference=found.task.map(level), reference_method=options.reference
        )

    def draw(self, table: Any) -> Any:
        tasks, panels = table.task.unique(), table.panel.unique()
        figure, axes = drawing.make_figure(
            len(tasks), len(panels), sharey="row"
        )
        for line, task in zip(axes, tasks, strict=True):
            for axis, panel in zip(line, panels, strict=True):
                here = table[(table.task == task) & (table.panel == panel)]
                _draw_panel(axis, here)
                axis.set_title(task, size=9)
                axis.set_xlabel(here.of.iloc[0], size=9)
            line[0].set_ylabel(f"{here.split.iloc[0]} metric, points", size=9)
        # The lines are the same for all tasks.
        for axis, panel in zip(axes[0], panels, strict=True):
            legend = axis.legend(
                fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.1)
            )
            legend.set_title(panel, prop={"size": 8})
        return figure


def _draw_panel(axis: Any, here: Any) -> None:
    settings = here.groupby("setting", sort=False)
    for setting, line, style in pictures.styled(settings):
        line = line.sort_values("x")
        axis.plot(line.x, line.score, label=setting, **style)
    axis.set_xscale("log")
    places = sorted(here.x.unique())
    axis.set_xticks(places, [f"{place:g}" for place in places])
    axis.minorticks_off()
    if "reference" in here and here.reference.notna().any():
        axis.axhline(
            here.reference.iloc[0],
            color="gray",
            linestyle="--",
            label=here.reference_method.iloc[0],
        )


def _with_settings(runs: Any, study_dir: Path, names: Any) -> Any:
    """Adds a column for each of the named settings to a study's runs.

    The values come from the runs' `config.yaml`, which has default values too.
    """
    values = []
    for _, row in runs.iterrows():
        folder = study_runs.run_folder(study_dir, row)
        config = Path(folder) / "config.yaml"
        values.append(
            {name: study_runs.read_setting(config, name) for name in names}
        )
    settings = pd.DataFrame(values, index=runs.index)
    return runs.drop(columns=names, errors="ignore").join(settings)
