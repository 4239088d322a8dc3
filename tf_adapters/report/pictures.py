"""Draws the pictures of a report. Each function returns a Matplotlib figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.report import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Largest number of classes for which the cells of a confusion matrix have
# readable numbers.
_MOST_WITH_NUMBERS = 15
_LONGEST_NAME = 18


def draw_confusion(matrix: Any, totals: int, names: list[str]) -> Figure:
    """Draws a confusion matrix.

    Cells are shaded by their share of all examples of the true class.

    Args:
        matrix: Integer array of counts, `(true class, predicted class)`.
        totals: Integer array `(true class,)` with the number of examples,
            including those predicted as a class that the picture leaves out.
        names: Names of the classes in the picture.
    """
    size = 1.9 + max(0.42 * len(names), 1.2)
    figure, ((axes,),) = drawing.make_figure(width=size + 0.6, height=size)
    shares = matrix / np.maximum(totals, 1)[:, None]
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.grid(False)
    cut = [_cut(name) for name in names]
    axes.set_xticks(range(len(names)), cut, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), cut)
    for label in axes.get_xticklabels():
        label.set_rotation_mode("anchor")
    if len(names) <= _MOST_WITH_NUMBERS:
        for (i, j), count in np.ndenumerate(matrix):
            color = "white" if shares[i, j] > 0.5 else "black"
            axes.text(
                *(j, i, f"{count:,}"),
                ha="center",
                va="center",
                size=7,
                color=color,
            )
    bar = figure.colorbar(image, ax=axes, shrink=0.8)
    bar.set_label("share of the right class", size=8)
    bar.ax.tick_params(labelsize=8)
    drawing.label_axes(axes, "predicted class", "right class")
    return figure


def _cut(name: str) -> str:
    # Matplotlib would read text between dollar signs as a formula.
    name = name.replace("$", r"\$")
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def draw_calibration(found: Any) -> Figure:
    """Draws a reliability diagram, and a bar chart of its counts below it.

    Args:
        found: `Reliability`.
    """
    figure, axes = drawing.make_figure(
        2, height=2.4, sharex=True, gridspec_kw={"height_ratios": (3, 1)}
    )
    upper, lower = axes[:, 0]
    upper.plot([0, 1], [0, 1], color="#888888", linewidth=1, label="ideal")
    upper.plot(
        found.probability,
        found.share,
        label=f"this run, error {found.error:.4f}",
        markersize=4,
        **next(drawing.styles()),
    )
    upper.set_ylim(-0.03, 1.03)
    lower.bar(
        found.probability,
        found.counts,
        0.6 / found.bins,
        color=drawing.COLORS[0],
    )
    drawing.label_axes(upper, "", "share that is right")
    drawing.label_axes(lower, "probability", "predictions")
    lower.locator_params(axis="y", integer=True)
    lower.set_xlim(-0.03, 1.03)
    return figure


def draw_scatter(right: Any, predicted: Any) -> Figure:
    """Draws a scatter plot of predicted numbers against the true numbers.

    Args:
        right: True numbers, float array `(examples,)`.
        predicted: Predicted numbers, float array `(examples,)`.
    """
    figure, ((axes,),) = drawing.make_figure(width=4.2, height=3.8)
    ends = [
        min(right.min(), predicted.min()),
        max(right.max(), predicted.max()),
    ]
    axes.plot(ends, ends, color="#888888", linewidth=1, label="equal")
    axes.scatter(
        right, predicted, s=9, alpha=0.4, color=drawing.COLORS[0], label="row"
    )
    drawing.label_axes(axes, "right number", "predicted number")
    return figure


def draw_entities(rows: Sequence[Any]) -> Figure:
    """Draws a bar chart of the precision, recall and F1 of each entity kind.

    Args:
        rows: List with a list for each kind of entity: its name, number of
            entities, precision, recall and F1.
    """
    figure, ((axes,),) = drawing.make_figure(width=3 + 0.6 * len(rows))
    series = [
        (name, [row[place] for row in rows], None)
        for place, name in enumerate(("precision", "recall", "F1"), 2)
    ]
    drawing.draw_bars(axes, series, 0.26, 0.24)
    labels = [_cut(row[0]) for row in rows]
    axes.set_xticks(range(len(rows)), labels, rotation=45, ha="right")
    axes.set_ylim(0, 1.03)
    drawing.label_axes(axes, "kind of entity", "", legend_outside=True)
    return figure


def draw_curves(
    losses: dict[str, Any], metrics: dict[str, Any], kept: Any
) -> Figure:
    """Draws the losses and the validation metrics over training steps.

    Args:
        losses: Dict from the name of each line to a list of `(step, loss)`.
        metrics: Dict from the name of each metric to a list of
            `(step, value)`.
        kept: Step whose weights the run kept, or `None`.
    """
    panels = [("loss", losses), ("on validation", metrics)]
    panels = [(name, lines) for name, lines in panels if lines]
    figure, axes = drawing.make_figure(columns=len(panels))
    for axis, (y, lines) in zip(axes.flat, panels, strict=True):
        for (name, points), style in zip(
            lines.items(), drawing.styles(), strict=False
        ):
            axis.plot(
                *zip(*points, strict=True), label=name, markersize=3, **style
            )
        if kept is not None:
            axis.axvline(kept, color="#888888", linestyle=":", label="kept")
        # Set the limits, so that a line with a single point is in view too.
        axis.set_xlim(
            0, 1.04 * max(x for some in lines.values() for x, _ in some)
        )
        drawing.label_axes(axis, "step", y)
    return figure
