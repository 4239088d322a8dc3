"""Norms of the gradient by block, as training went on."""

import json
from pathlib import Path
import re

import numpy as np
import pandas as pd

from tf_adapters.analysis import pictures
from tf_adapters.analysis.analysis import Analysis
from tf_adapters.analysis.analysis import register
from tf_adapters.common.errors import UserError

COLUMNS = ("run", "step", "part", "norm")
_BLOCK = re.compile(r"(?:^|/)(?:block|transformer_layer|layer)_(\d+)(?:_|/|$)")


def part_of(name):
    """Returns `"block 3"`, `"head"`, `"pooler"` or `"embeddings"` of a weight.

    Args:
        name: Its name in an adapter folder.
    """
    found = _BLOCK.search(name)
    if found:
        return f"block {int(found.group(1)) + 1}"
    if name.startswith("head"):
        return "head"
    return "pooler" if "pooled" in name else "embeddings"


def by_part(norms):
    """Returns a dict from part to the norm of its whole gradient.

    Args:
        norms: Dict from the name of a weight to the norm of its gradient.
    """
    squares = {}
    for name, norm in norms.items():
        part = part_of(name)
        squares[part] = squares.get(part, 0.0) + norm**2
    return {part: float(np.sqrt(value)) for part, value in squares.items()}


def read_log(folder):
    """Returns the records of a run's `metrics.jsonl`.

    Raises:
        UserError: If there is none.
    """
    path = Path(folder) / "metrics.jsonl"
    if not path.exists():
        raise UserError(f"{folder} is no run folder: it has no metrics.jsonl.")
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@register("gradient_norms")
class GradientNorms(Analysis):
    """Norms of the gradient of each block, of pooler and head, by step.

    L2 norms over all weights of a part that train, before clipping, at each
    validation (Han et al. 2021, figure 3). What is frozen has no gradient: with
    adapters a block's norm is that of its adapters. The runs need
    `--params_override=train.log_gradient_norms=true`, and
    `train.validate_every_steps` for more than one point an epoch.
    """

    reads = "model_dirs"

    def table(self, options):
        rows = []
        for folder in options.folders:
            records = [r for r in read_log(folder) if "gradient_norms" in r]
            if not records:
                raise UserError(
                    f"{folder} logged no norms of gradients. Train with "
                    "--params_override=train.log_gradient_norms=true."
                )
            for record in records:
                for part, norm in by_part(record["gradient_norms"]).items():
                    rows.append((str(folder), record["step"], part, norm))
        return pd.DataFrame(rows, columns=COLUMNS)

    def draw(self, table):
        runs = list(dict.fromkeys(table.run))
        figure, axes = pictures.make_figure(columns=len(runs), sharey=True)
        for axis, run in zip(axes.flat, runs, strict=True):
            here = table[table.run == run]
            parts = sorted(here.part.unique(), key=_order)
            for part, style in zip(parts, pictures.styles(), strict=False):
                line = here[here.part == part]
                axis.plot(
                    line.step, line.norm, label=part, markersize=3, **style
                )
            axis.set_yscale("log")
            pictures.describe(
                axis,
                "step",
                "L2 norm of the gradient",
                Path(run).name,
                legend_beside=True,
            )
        return figure


def _order(part):
    words = part.split()
    return (words[0], int(words[1]) if len(words) > 1 else 0)
