"""One style for all pictures: readable at column width, and without colors."""

import itertools

from tf_adapters.common.extras import needs_extra

# Okabe and Ito's, which the color-blind tell apart; black comes last.
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7"),
    *("#56b4e9", "#e69f00", "#f0e442", "#000000"),
)
MARKERS = "osD^vPX*"
_WIDTH, _HEIGHT = 4.2, 3.2


def make_figure(rows=1, columns=1, width=_WIDTH, height=_HEIGHT, **options):
    """Returns a figure and an array of its axes, `(rows, columns)`.

    Args:
        rows: Number of axes below each other.
        columns: Number of axes next to each other.
        width: Inches of one of the axes.
        height: Inches of one of the axes.
        **options: Of `Figure.subplots`.

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


def styles():
    """Yields color and marker for one line after the other."""
    for number in itertools.count():
        yield {
            "color": COLOURS[number % len(COLOURS)],
            "marker": MARKERS[number % len(MARKERS)],
        }


def draw_bars(axes, series, step, width, **options):
    """Draws groups of bars, a bar of each series in each group.

    Args:
        axes: Of `matplotlib`; group `i` is drawn around `i`.
        series: List of a label, a height for each group, and as many errors or
            `None`.
        step: How far the bars of a group are apart.
        width: Of a bar.
        **options: Of `Axes.bar`.

    Returns:
        A list with the places of each series' bars.
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


def describe(axes, x, y, title="", legend_beside=False):
    """Labels both axes, and gives a legend to what has one.

    Args:
        axes: Matplotlib's.
        x: What lies on the horizontal axis.
        y: What lies on the vertical one.
        title: Title, if it has one.
        legend_beside: Whether the legend stands next to the axes, where lines
            or bars leave it no room within.
    """
    axes.set_xlabel(x, size=9)
    axes.set_ylabel(y, size=9)
    if x == "step":
        # A run of four steps would have a tick at 2.25.
        axes.locator_params(axis="x", integer=True)
    if title:
        axes.set_title(title, size=9)
    if axes.get_legend_handles_labels()[0]:
        beside = {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
        axes.legend(fontsize=8, **(beside if legend_beside else {}))
