"""Functions that give all pictures the same style.

Pictures are readable at the width of a printed column, and without colors.
"""

from __future__ import annotations

from collections.abc import Iterator
import itertools
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.extras import needs_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    import numpy as np


# Okabe and Ito's palette for color-blind readers. Black is last.
COLORS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7"),
    *("#56b4e9", "#e69f00", "#f0e442", "#000000"),
)
MARKERS = "osD^vPX*"
_WIDTH, _HEIGHT = 4.2, 3.2


def make_figure(
    rows: int = 1,
    columns: int = 1,
    width: float = _WIDTH,
    height: float = _HEIGHT,
    **options: Any,
) -> tuple[Figure, np.ndarray]:
    """Returns a Matplotlib figure, and its axes as an array `(rows, columns)`.

    Args:
        rows: Number of rows of axes. Default: 1.
        columns: Number of columns of axes. Default: 1.
        width: Width of one `Axes` in inches. Default: 4.2.
        height: Height of one `Axes` in inches. Default: 3.2.
        **options: Keyword arguments of `Figure.subplots`.

    Raises:
        ConfigError: If Matplotlib is not installed.
    """
    with needs_extra("report", "A picture"):
        import matplotlib.figure

    figure = matplotlib.figure.Figure(
        figsize=(columns * width, rows * height), layout="constrained"
    )
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for one in axes.flat:
        one.grid(alpha=0.3)
        one.tick_params(which="both", labelsize=8)
    return figure, axes


def plain(text: str) -> str:
    """Returns a user's text so that Matplotlib does not read it as TeX."""
    return text.replace("$", r"\$")


def styles() -> Iterator[dict[str, str]]:
    """Yields a dict with a color and a marker for each successive line.

    The iterator does not end: colors and markers repeat.
    """
    for number in itertools.count():
        yield {
            "color": COLORS[number % len(COLORS)],
            "marker": MARKERS[number % len(MARKERS)],
        }


def draw_bars(
    axes: Any,
    series: Any,
    step: Any,
    width: float,
    **options: Any,
) -> list[Any]:
    """Draws groups of bars, with one bar of each series in each group.

    Args:
        axes: Matplotlib axes. Group `i` is centered at `i`.
        series: List of tuples of a label, a list with the height of the bar in
            each group, and a list with the error of each bar, or `None` for
            no error bars.
        step: Distance between the centers of adjacent bars in a group.
        width: Width of a bar.
        **options: Keyword arguments of `Axes.bar`.

    Returns:
        List with a list for each series: the horizontal positions of its bars.
    """
    drawn = []
    for (label, heights, errors), style in zip(series, styles(), strict=False):
        shift = (len(drawn) - (len(series) - 1) / 2) * step
        drawn.append([i + shift for i in range(len(heights))])
        axes.bar(
            drawn[-1],
            heights,
            width,
            yerr=errors,
            label=label,
            color=style["color"],
            **options,
        )
    return drawn


def label_axes(
    axes: Any, x: Any, y: Any, title: Any = "", legend_outside: bool = False
) -> None:
    """Labels both axes, and adds a legend if any line or bar has a label.

    Args:
        axes: Matplotlib axes.
        x: Label of the horizontal axis.
        y: Label of the vertical axis.
        title: Title, or "" (default) for none.
        legend_outside: Whether to place the legend next to the axes instead of
            inside. Default: `False`.
    """
    axes.set_xlabel(x, size=9)
    axes.set_ylabel(y, size=9)
    if x == "step":
        # Otherwise a run of four steps would have ticks at fractions of steps.
        axes.locator_params(axis="x", integer=True)
    if title:
        axes.set_title(title, size=9)
    if axes.get_legend_handles_labels()[0]:
        outside = {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
        axes.legend(fontsize=8, **(outside if legend_outside else {}))
