"""Shows the share of AdapterBias's gates that stay open in training."""

from __future__ import annotations

from collections.abc import Iterator
import itertools
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import pandas as pd

from tf_adapters.common.errors import UserError
from tf_adapters.common.settings_text import load_setting
from tf_adapters.papers.analysis.support import pictures
from tf_adapters.papers.analysis.support.analysis import Analysis
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.report import drawing
from tf_adapters.runs import earlier_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COLUMNS = ("run", "task", "encoder", "l0_lambda", "share", "open")
COLUMNS += ("open_at_start",)
# Names in the picture, and keys in `result.json` after and before training.
_SHARES = {
    "expected": ("gates_open_expected", "gates_open_expected_at_start"),
    "sampled": ("gates_open_sampled", "gates_open_sampled_at_start"),
}
_ZERO = "gates_exactly_zero"


def shares(result: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yields three tuples `(name, share of open gates, share before training)`.

    Args:
        result: A run's `result.json`.

    Raises:
        UserError: If the run has no gates.
    """
    report = result.get("method_report", {})
    if "gates" not in report:
        raise UserError(
            f"The run of task `{result.get('task')}` with method "
            f"`{result.get('method')}` has no gates. "
            "--method=adapter_bias_l0 trains some."
        )
    for key in itertools.chain(*_SHARES.values(), [_ZERO]):
        if key not in report:
            raise UserError(
                f"The result.json of a run of task `{result.get('task')}` is "
                f"damaged: its `method_report` lacks `{key}`."
            )
    for name, (after, before) in _SHARES.items():
        yield name, report[after], report[before]
    # In evaluation, untrained gates are one half, not zero.
    yield "not exactly zero", 1 - report[_ZERO], 1.0


@register("gates")
class Gates(Analysis):
    """Shows the share of gates that training left open, by task.

    AdapterBias, table 7, does not say which share it counts. This table has
    three: the expected share, the share in one draw, and the share of gates
    that are not exactly zero in evaluation. Next to each is its value before
    training, since untrained gates are open with probability 0.83. Runs with
    the same task, encoder and lambda are averaged. The picture has bars by
    task. If runs have several lambdas, it has a panel for each task and a line
    for each share.
    """

    reads = "model_dirs"

    def table(self, options: Any) -> pd.DataFrame:
        rows = []
        for folder in options.folders:
            result = earlier_runs.read_result(folder)
            if result is None:
                raise UserError(f"{folder} holds no finished run.")
            found = list(shares(result))
            config = Path(folder) / "config.yaml"
            encoder = load_setting(config, "encoder")
            strength = load_setting(config, "method.l0_lambda")
            for name, after, before in found:
                rows.append(
                    (
                        str(folder),
                        result.get("task"),
                        Path(str(encoder)).name,
                        strength,
                        name,
                        after,
                        before,
                    )
                )
        return pd.DataFrame(rows, columns=COLUMNS)

    def draw(self, table: Any) -> Any:
        found = averaged(table)
        if found.l0_lambda.nunique() > 1:
            return _draw_lines(found)
        return _draw_bars(found)


def averaged(table: Any) -> Any:
    """Averages the rows of a table over runs that differ only in the seed.

    The result has a column `group`: the task, and the encoder if there are
    several encoders.
    """
    group = table.task
    if table.encoder.nunique() > 1:
        group = table.task + ", " + table.encoder
    keys = ["group", "l0_lambda", "share"]
    found = table.assign(group=group).groupby(keys, sort=False)
    return found[["open", "open_at_start"]].mean().reset_index()


def _draw_bars(found: Any) -> Figure:
    groups = list(dict.fromkeys(found.group))
    figure, ((axes,),) = drawing.make_figure(width=3.7 + 0.9 * len(groups))
    series, starts = [], []
    for name in dict.fromkeys(found.share):
        here = found[found.share == name].set_index("group").loc[groups]
        series.append((name, 100 * here.open, None))
        starts.append(100 * here.open_at_start)
    places = drawing.draw_bars(axes, series, 0.27, 0.25)
    for at, start in zip(places, starts, strict=True):
        axes.plot(at, start, "k_", markersize=12)
    axes.plot([], [], "k_", label="before training")
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylim(0, 105)
    drawing.label_axes(axes, "task", "open gates, %", legend_outside=True)
    return figure


def _draw_lines(found: Any) -> Figure:
    figure, panels = pictures.make_panels(found, "group")
    least = found.l0_lambda[found.l0_lambda > 0].min()
    for axis, group, here in panels:
        # Set before `axhline`, which fixes the limits of a linear scale.
        axis.set_xscale("symlog", linthresh=least)
        here = here.sort_values("l0_lambda")
        shares_of_gates = here.groupby("share", sort=False)
        for name, line, style in pictures.styled(shares_of_gates):
            axis.plot(line.l0_lambda, 100 * line.open, label=name, **style)
            start = 100 * line.open_at_start.iloc[0]
            axis.axhline(start, color=style["color"], linestyle=":")
        axis.plot([], [], "k:", label="before training")
        axis.set_ylim(0, 105)
        drawing.label_axes(axis, "lambda", "open gates, %", group)
    return figure
