"""Tests that pictures have labels on axes, and no overlapping text."""

import itertools

from matplotlib.backends.backend_agg import FigureCanvasAgg
import numpy as np
import pytest

from tf_adapters.report import pictures
from tf_adapters.report.calibration import reliability

LONG = [f"a class with a long name {i}" for i in range(12)]


def _boxes(figure):
    """Returns the rectangles of all texts of a figure's first axes."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    axes = figure.axes[0]
    texts = [*axes.texts, *axes.get_yticklabels(), axes.xaxis.label]
    texts.append(axes.yaxis.label)
    return [t.get_window_extent(canvas.get_renderer()) for t in texts]


@pytest.mark.parametrize("names", [["ham", "spam"], LONG])
def test_texts_of_a_matrix_do_not_overlap(names):
    matrix = np.full((len(names), len(names)), 1234)
    figure = pictures.draw_confusion(matrix, matrix.sum(axis=1), names)
    assert not any(
        a.overlaps(b) for a, b in itertools.combinations(_boxes(figure), 2)
    )
    axes = figure.axes[0]
    assert axes.get_xlabel() == "predicted class"
    assert axes.get_ylabel() == "right class"
    assert len(axes.texts) == len(names) ** 2


def test_rows_of_a_matrix_are_shaded_by_their_class():
    matrix = np.array([[1, 0], [2, 2]])
    figure = pictures.draw_confusion(matrix, np.array([2, 4]), ["a", "b"])
    shares = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(shares, [[0.5, 0], [0.5, 0.5]])


def test_a_name_is_no_formula():
    figure = pictures.draw_confusion(np.eye(2), np.ones(2), ["$x", "y$"])
    labels = [t.get_text() for t in figure.axes[0].get_xticklabels()]
    assert labels == [r"\$x", r"y\$"]


def test_a_reliability_diagram_has_its_bins():
    found = reliability([1, 0, 1], [0.9, 0.9, 0.3])
    upper, lower = pictures.draw_calibration(found).axes
    np.testing.assert_allclose(
        upper.lines[1].get_xydata(), [[0.3, 1], [0.9, 0.5]]
    )
    assert [bar.get_height() for bar in lower.patches] == [1, 2]
    assert lower.get_xlabel() == "probability"
    assert upper.get_ylabel() == "share that is right"


def test_curves_name_what_they_show_and_the_step_that_was_kept():
    losses = {"training": [(1, 0.5), (4, 0.25)]}
    metrics = {"accuracy": [(4, 0.75)]}
    left, right = pictures.draw_curves(losses, metrics, 4).axes
    assert (left.get_xlabel(), left.get_ylabel()) == ("step", "loss")
    assert right.get_ylabel() == "on validation"
    labels = [t.get_text() for t in right.get_legend().get_texts()]
    assert labels == ["accuracy", "kept"]
    assert left.lines[1].get_xdata() == [4, 4]
