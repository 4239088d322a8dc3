"""Draws the learning curves of a run from its log."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.report.content import Picture
from tf_adapters.report.pictures import draw_curves

if TYPE_CHECKING:
    from tf_adapters.report.run_files import RunFiles


def curve_pictures(run: RunFiles) -> list[Any]:
    """Returns a list with a `Picture` of losses and validation metrics.

    The list is empty if the run has no log.

    Args:
        run: `RunFiles`.
    """
    losses, metrics = (
        collections.defaultdict(list),
        collections.defaultdict(list),
    )
    for record in run.records:
        step = record.get("step")
        if "loss" in record:
            losses["training"].append((step, record["loss"]))
        for name, value in record.get("validation", {}).items():
            if name == "loss":
                losses["validation"].append((step, value))
            else:
                metrics[name].append((step, value))
    if not losses and not metrics:
        return []
    kept = run.result.get("best_step")
    caption = "Training: the mean loss since the last point, and validations."
    return [
        Picture("curves", caption, lambda: draw_curves(losses, metrics, kept))
    ]
