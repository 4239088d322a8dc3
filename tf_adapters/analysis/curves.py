"""How the loss and the metric on validation went on, step by step."""

from pathlib import Path

import pandas as pd

from tf_adapters.analysis import pictures
from tf_adapters.analysis.analysis import Analysis
from tf_adapters.analysis.analysis import register
from tf_adapters.analysis.gradient_norms import read_log
from tf_adapters.common.dataclass_config import load_yaml
from tf_adapters.common.errors import UserError

COLUMNS = ("run", "group", "step", "metric", "value")


def rows_of(records):
    """Yields step, metric and value of each validation in a run's log."""
    for record in records:
        for name, value in record.get("validation", {}).items():
            yield record["step"], name, value


def spread(table):
    """Returns mean, least and largest value over runs, and their number.

    Args:
        table: `DataFrame` with `group`, `metric`, `step` and `value`.
    """
    groups = table.groupby(["metric", "group", "step"], sort=False).value
    return groups.agg(["mean", "min", "max", "count"]).reset_index()


@register("curves")
class Curves(Analysis):
    """Loss and metrics on the validation set by step.

    A panel for each metric, a line for each group of runs: the mean over them,
    and as a band from the least to the largest (He et al. 2021, figures 5, 9
    and 10; Han et al. 2021, figures 1 and 13). Runs of one method and one
    number of pretraining steps are a group. The runs need
    `train.validate_every_steps`; the loss is there with
    `train.evaluate_loss=true`.
    """

    reads = "model_dirs"

    def table(self, options):
        rows = []
        for folder in options.folders:
            found = list(rows_of(read_log(folder)))
            if not found:
                raise UserError(f"{folder} holds no validation yet.")
            group = _group(folder)
            rows += [(str(folder), group, *row) for row in found]
        return pd.DataFrame(rows, columns=COLUMNS)

    def draw(self, table):
        found = spread(table)
        metrics = list(dict.fromkeys(found.metric))
        figure, axes = pictures.make_figure(columns=len(metrics))
        for axis, metric in zip(axes.flat, metrics, strict=True):
            here = found[found.metric == metric]
            for (group, line), style in zip(
                here.groupby("group", sort=False),
                pictures.styles(),
                strict=False,
            ):
                runs = line["count"].max()
                name = f"{group}, mean of {runs} runs" if runs > 1 else group
                axis.plot(
                    line.step, line["mean"], label=name, markersize=3, **style
                )
                axis.fill_between(
                    line.step,
                    line["min"],
                    line["max"],
                    alpha=0.2,
                    color=style["color"],
                )
            pictures.describe(axis, "step", f"validation {metric}")
        return figure


def _group(folder):
    """Returns the method of a run, and how long it was pretrained."""
    settings = load_yaml(Path(folder) / "config.yaml")
    method = settings["method"]["name"]
    steps = settings.get("pretrain", {}).get("steps", 0)
    return f"{method}, {steps} steps of pretraining" if steps else method
