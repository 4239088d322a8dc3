"""Plots gradient norms of each block over training steps."""

from __future__ import annotations

from pathlib import Path
import re
from typing import TYPE_CHECKING
from typing import Any

from matplotlib import colormaps
import numpy as np
import pandas as pd

from tf_adapters.common.errors import UserError
from tf_adapters.common.settings_text import load_setting
from tf_adapters.papers.analysis.support import pictures
from tf_adapters.papers.analysis.support.analysis import Analysis
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.report import drawing
from tf_adapters.runs import run_files

if TYPE_CHECKING:
    import argparse

    from matplotlib.figure import Figure


COLUMNS = ("run", "method", "seed", "step", "part", "norm")
# Fraction of a run's records that count as its beginning, and as its end.
_SHARE = 0.1
# `group_0_inner_layer_0`: ALBERT's blocks all have the same weights.
_SHARED = re.compile(r"(?:^|/)(?:shared_|group_\d+_)")
_BLOCK = re.compile(r"(?:^|[/_])(?:block|layer)_(\d+)(?=[_./]|$)")
_OTHERS = {"head": "head", "pooled": "pooler", "final_norm": "final_norm"}


def part_of(name: str) -> str:
    """Returns the part of a model that a weight is in, such as `"block 3"`.

    Other parts are `"shared"` (weights that several blocks use), `"head"`,
    `"pooler"`, `"final_norm"` and `"embeddings"`.

    Args:
        name: Name of the weight in an adapter folder.
    """
    if _SHARED.search(name):
        return "shared"
    found = _BLOCK.search(name)
    if found:
        return f"block {int(found.group(1)) + 1}"
    # In a run of several tasks, names begin with the task's name.
    parts = (part for word, part in _OTHERS.items() if f"/{word}" in f"/{name}")
    return next(parts, "embeddings")


def by_part(norms: dict[str, Any]) -> dict[Any, float]:
    """Returns a dict from each part of a model to the norm of its gradient.

    Args:
        norms: Dict from the name of a weight to the norm of its gradient.
    """
    squares = {}
    for name, norm in norms.items():
        part = part_of(name)
        squares[part] = squares.get(part, 0.0) + norm * norm
    return {part: float(np.sqrt(value)) for part, value in squares.items()}


def read_log(folder: Path) -> list[Any]:
    """Returns the records of a run's `metrics.jsonl`.

    Raises:
        UserError: If the file is missing or damaged.
    """
    path = Path(folder) / "metrics.jsonl"
    if not path.exists():
        raise UserError(
            f"{folder} is not a run folder: it has no metrics.jsonl."
        )
    return run_files.read_records(path)


def kept(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the ratio of each part's final gradient norm to its initial one.

    The ratio is the column `kept`: the mean over the last tenth of a run's
    records divided by the mean over the first tenth. There is a row for each
    run and part.

    Args:
        table: `DataFrame` with `COLUMNS`.
    """
    rows = []
    for facts, line in table.groupby(
        ["run", "method", "seed", "part"], sort=False
    ):
        norms = line.sort_values("step").norm
        number = max(1, round(_SHARE * len(norms)))
        ratio = norms.iloc[-number:].mean() / norms.iloc[:number].mean()
        rows.append((*facts, ratio))
    return pd.DataFrame(rows, columns=["run", "method", "seed", "part", "kept"])


@register("gradient_norms")
class GradientNorms(Analysis):
    """Plots the gradient norms of each block, the pooler and the head by step.

    Shows the L2 norm over all trained weights of a part at each validation,
    before clipping (Han et al. 2021, figure 3). Frozen weights have no
    gradient, so with adapters a block's norm is its adapters' norm. The runs
    need `--params_override=train.log_gradient_norms=true`, and
    `train.validate_every_steps` for more than one point per epoch. `--summary`
    shows, for each part, the mean norm in the last tenth of training divided by
    the mean norm in the first tenth. It is near 0 if gradients vanish.
    """

    reads = "model_dirs"

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--summary",
            action="store_true",
            help="only the norms at the end relative to the beginning",
        )

    def table(self, options: Any) -> pd.DataFrame:
        rows = []
        for folder in options.folders:
            records = [r for r in read_log(folder) if "gradient_norms" in r]
            if not records:
                raise UserError(
                    f"{folder} logged no norms of gradients. Train with "
                    "--params_override=train.log_gradient_norms=true."
                )
            config = Path(folder) / "config.yaml"
            settings = (
                load_setting(config, n) for n in ("method.name", "seed")
            )
            facts = str(folder), *settings
            for record in records:
                for part, norm in by_part(record["gradient_norms"]).items():
                    rows.append((*facts, record["step"], part, norm))
        table = pd.DataFrame(rows, columns=COLUMNS)
        return kept(table) if options.summary else table

    def draw(self, table: Any) -> Any:
        if "kept" in table:
            return _draw_kept(table)
        styles = _styles(sorted(table.part.unique(), key=_order))
        figure, panels = pictures.make_panels(table, "run", sharey=True)
        for axis, _, here in panels:
            for part in sorted(here.part.unique(), key=_order):
                line = here[here.part == part]
                axis.plot(
                    line.step,
                    line.norm,
                    label=part,
                    markersize=3,
                    **styles[part],
                )
            axis.set_yscale("log")
            drawing.label_axes(
                axis,
                "step",
                "L2 norm of the gradient",
                f"{here.method.iloc[0]}, seed {here.seed.iloc[0]}",
                legend_outside=True,
            )
        return figure


def _styles(parts: Any) -> dict[Any, dict[str, Any]]:
    """Returns a dict from each part of a model to the style of its line.

    Lines of upper blocks are darker.
    """
    blocks = [part for part in parts if part.startswith("block")]
    others = [part for part in parts if part not in blocks]
    shades = colormaps["viridis_r"](np.linspace(0.15, 1, len(blocks)))
    found = dict(
        zip(blocks, ({"color": shade} for shade in shades), strict=True)
    )
    for part, place in zip(others, (1, 3, 7, 0, 5), strict=False):
        found[part] = {
            "color": drawing.COLORS[place],
            "marker": drawing.MARKERS[place],
        }
    return found


def _draw_kept(table: Any) -> Figure:
    parts = sorted(table.part.unique(), key=_order)
    methods = list(dict.fromkeys(table.method))
    figure, ((axes,),) = drawing.make_figure(width=2 + 0.7 * len(parts))
    series = []
    for method in methods:
        here = table[table.method == method]
        groups = here.groupby("part").kept.agg(["mean", "sem"]).reindex(parts)
        errors = None if groups["sem"].isna().all() else groups["sem"]
        series.append((method, groups["mean"], errors))
    width = 0.8 / len(methods)
    drawing.draw_bars(axes, series, width, width, capsize=2)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(parts)), parts, rotation=45)
    drawing.label_axes(
        axes, "part of the model", "norm at the end / at the beginning"
    )
    return figure


def _order(part: Any) -> tuple[Any, int]:
    words = part.split()
    return (words[0], int(words[1]) if len(words) > 1 else 0)
