"""Plots the loss and the metric on the validation set over training steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib import colormaps
import pandas as pd

from tf_adapters.common.errors import UserError
from tf_adapters.common.settings_text import load_setting
from tf_adapters.papers.analysis.gradient_norms import read_log
from tf_adapters.papers.analysis.support import pictures
from tf_adapters.papers.analysis.support.analysis import Analysis
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.report import drawing

COLUMNS = ("run", "method", "pretraining", "step", "metric", "value")
# With at least this many lengths of pretraining, each method has a panel.
_MANY = 3


def validation_rows(records: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yields `(step, metric, value)` from each validation in a run's log."""
    for record in records:
        for name, value in record.get("validation", {}).items():
            yield record["step"], name, value


def final_rises(table: pd.DataFrame) -> pd.Series:
    """Returns how far each metric of each run has risen by the last step.

    The rise is the value at the last step minus the lowest value in the run.
    The loss of a run that overfits has a large one (He et al. 2021, figure 5).
    Rows of earlier steps have NaN.

    Args:
        table: `DataFrame` with `COLUMNS`, the steps of each run in order.
    """
    values = table.groupby(["run", "metric"], sort=False).value
    is_last = ~table.duplicated(["run", "metric"], keep="last")
    return (table.value - values.transform("min")).where(is_last)


def spread_over_runs(table: pd.DataFrame) -> Any:
    """Summarizes each metric at each step, over runs that form a group.

    A group has runs with the same method and number of pretraining steps.
    Returns a `DataFrame` with the mean, the minimum, the maximum and the number
    of runs.

    Args:
        table: `DataFrame` with `COLUMNS`.
    """
    keys = ["metric", "method", "pretraining", "step"]
    groups = table.groupby(keys, sort=False).value
    return groups.agg(["mean", "min", "max", "count"]).reset_index()


@register("curves")
class Curves(Analysis):
    """Plots loss and metrics on the validation set over training steps.

    There is a panel for each metric and a line for each group of runs, with the
    mean and a band from the smallest to the largest value (He et al. 2021,
    figures 5 and 9). A group has one method and one number of pretraining
    steps. With three or more such numbers, each method has its own panel, and
    lines are darker for longer pretraining (Han et al. 2021, figures 1 and 13).
    The runs need `train.validate_every_steps`, and `train.evaluate_loss=true`
    for the loss. In the table, `rise` is the last value of a metric minus its
    lowest value.
    """

    reads = "model_dirs"

    def table(self, options: Any) -> pd.DataFrame:
        rows = []
        for folder in options.folders:
            found = list(validation_rows(read_log(folder)))
            if not found:
                raise UserError(f"{folder} holds no validation yet.")
            group = _group(folder)
            rows += [(str(folder), *group, *row) for row in found]
        table = pd.DataFrame(rows, columns=COLUMNS)
        return table.assign(rise=final_rises(table))

    def draw(self, table: Any) -> Any:
        found = spread_over_runs(table)
        metrics = list(dict.fromkeys(found.metric))
        many = found.pretraining.nunique() >= _MANY
        parts = list(dict.fromkeys(found.method)) if many else [None]
        figure, axes = drawing.make_figure(
            len(parts), len(metrics), sharex=True, sharey="col"
        )
        for line, part in zip(axes, parts, strict=True):
            for axis, metric in zip(line, metrics, strict=True):
                here = found[found.metric == metric]
                here = here if part is None else here[here.method == part]
                _draw_groups(axis, here, part)
                drawing.label_axes(
                    axis,
                    "step",
                    f"validation {metric}",
                    part or "",
                    legend_outside=many and metric == metrics[-1],
                )
                if many and metric != metrics[-1]:
                    axis.get_legend().remove()
        pictures.explain_bands(figure, found["count"].max())
        return figure


def _draw_groups(axis: Any, here: Any, method: Any) -> None:
    """Draws a line for each group of runs in the table `here`.

    `method` is the only method in the table, or `None` if it has all methods.
    """
    groups = here.groupby(["method", "pretraining"], sort=True)
    lengths = sorted(here.pretraining.unique())
    for (name, steps), line, style in pictures.styled(groups):
        # Runs of a group may have validated at different steps.
        line = line.sort_values("step")
        label = _words(name, steps) if method is None else f"{steps:,} steps"
        runs = line["count"].max()
        if runs > 1:
            label += f", mean of {runs} runs"
        if method is not None:
            shade = lengths.index(steps) / max(1, len(lengths) - 1)
            style = {"color": colormaps["viridis_r"](0.1 + 0.9 * shade)}
        axis.plot(line.step, line["mean"], label=label, markersize=3, **style)
        axis.fill_between(
            line.step, line["min"], line["max"], alpha=0.2, color=style["color"]
        )


def _words(method: Any, steps: Any) -> Any:
    return f"{method}, {steps} steps of pretraining" if steps else method


def _group(folder: Path) -> tuple[Any, Any]:
    """Returns a run's method and its number of pretraining steps."""
    path = Path(folder) / "config.yaml"
    method = load_setting(path, "method.name")
    # Runs of earlier versions lack this setting.
    return method, load_setting(path, "pretrain.steps", default=0)
