"""What share of AdapterBias's gates is left open."""

import json
from pathlib import Path

import pandas as pd

from tf_adapters.analysis import pictures
from tf_adapters.analysis.analysis import Analysis
from tf_adapters.analysis.analysis import register
from tf_adapters.common.dataclass_config import load_yaml
from tf_adapters.common.errors import UserError

COLUMNS = ("run", "task", "l0_lambda", "share", "open", "open_at_start")
# The name in a picture, and the numbers in `result.json`.
_SHARES = {
    "expected": ("gates_open_expected", "gates_open_expected_at_start"),
    "sampled": ("gates_open_sampled", "gates_open_sampled_at_start"),
}


def shares(result):
    """Yields name, share of open gates, and that before training.

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
    for name, (after, before) in _SHARES.items():
        yield name, report[after], report[before]
    # Untrained gates give one half in evaluation: none is zero.
    yield "not exactly zero", 1 - report["gates_exactly_zero"], 1.0


@register("gates")
class Gates(Analysis):
    """The share of gates that training left open, by task.

    AdapterBias, table 7, which does not say which share it counts. Here are
    the expected share, that of one draw, and that of gates that are not exactly
    zero in evaluation, each beside its value before training: untrained gates
    are open with probability 0.83.
    """

    reads = "model_dirs"

    def table(self, options):
        rows = []
        for folder in options.folders:
            path = Path(folder) / "result.json"
            if not path.exists():
                raise UserError(f"{folder} holds no finished run.")
            result = json.loads(path.read_text(encoding="utf-8"))
            settings = load_yaml(Path(folder) / "config.yaml")["method"]
            for name, after, before in shares(result):
                rows.append(
                    (
                        str(folder),
                        result["task"],
                        settings["l0_lambda"],
                        name,
                        after,
                        before,
                    )
                )
        return pd.DataFrame(rows, columns=COLUMNS)

    def draw(self, table):
        runs = list(dict.fromkeys(table.run))
        tasks = table.drop_duplicates("run").set_index("run").task
        figure, ((axes,),) = pictures.make_figure(width=3.7 + 0.9 * len(runs))
        names = list(dict.fromkeys(table.share))
        for place, (name, style) in enumerate(
            zip(names, pictures.styles(), strict=False)
        ):
            here = table[table.share == name].set_index("run").loc[runs]
            at = [i + (place - 1) * 0.27 for i in range(len(runs))]
            axes.bar(
                at, 100 * here.open, 0.25, label=name, color=style["color"]
            )
            axes.plot(at, 100 * here.open_at_start, "k_", markersize=12)
        axes.plot([], [], "k_", label="before training")
        axes.set_xticks(range(len(runs)), [tasks[run] for run in runs])
        axes.set_ylim(0, 105)
        pictures.describe(axes, "task", "open gates, %", legend_beside=True)
        return figure
