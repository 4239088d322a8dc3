"""Panels, line styles and labels for the pictures of analyses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.report.drawing import make_figure
from tf_adapters.report.drawing import styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    import pandas as pd


# Number of characters that fit side by side below a panel.
_TICKS_LEVEL = 20
# Labels for settings on an axis.
_IN_WORDS = {
    "data.max_train_examples": "training examples",
    "method.init_stddev": "standard deviation of the initial weights",
    "method.k": "top blocks that train",
    "method.l0_lambda": "lambda",
    "method.reduction_factor": "reduction factor",
    "method.units": "size of the adapters",
    "pretrain.steps": "steps of pretraining",
    "train.learning_rate": "learning rate",
    "trained_weights": "trained weights",
}


def make_panels(
    table: pd.DataFrame, column: str, **options: Any
) -> tuple[Figure, list[tuple[Any, Any, Any]]]:
    """Returns a figure with a panel for each value of a column.

    Args:
        table: `DataFrame`.
        column: Name of one of its columns.
        **options: See `make_figure`.

    Returns:
        The figure, and a list with each panel's axes, value and rows.
    """
    values = list(dict.fromkeys(table[column]))
    figure, axes = make_figure(columns=len(values), **options)
    return figure, [
        (axis, value, table[table[column] == value])
        for axis, value in zip(axes.flat, values, strict=True)
    ]


def styled(groups: Any) -> Iterator[tuple[Any, Any, dict[str, str]]]:
    """Yields each group of a pandas `groupby`: name, rows, and a line style."""
    for (name, rows), style in zip(groups, styles(), strict=False):
        yield name, rows, style


def in_words(setting: Any) -> Any:
    """Returns the axis label for a setting. Defaults to the setting's name."""
    return _IN_WORDS.get(setting, setting)


def label_places(axis: Any, places: Any, labels: list[str]) -> None:
    """Labels places of the horizontal axis; long labels are turned.

    Args:
        axis: Matplotlib's axes.
        places: Positions on the axis.
        labels: Label of each position.
    """
    crowded = sum(map(len, labels)) > _TICKS_LEVEL
    axis.set_xticks(places, labels, rotation=45 if crowded else 0)


def explain_bands(figure: Any, runs: Any) -> None:
    """Adds a title that explains the bands around lines that average runs.

    Args:
        figure: Matplotlib's figure.
        runs: Largest number of runs in a line. If 1, no title is added.
    """
    if runs > 1:
        figure.suptitle("Bands: the least to the largest run", size=9)
