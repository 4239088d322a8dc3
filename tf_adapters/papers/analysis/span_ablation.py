"""Measures a run without the adapters of each contiguous span of blocks."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.papers.analysis.support import pictures
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.papers.analysis.support.trained_run import RunsAnalysis
from tf_adapters.report import drawing

COLUMNS = ("run", "task", "first", "last", "blocks", "metric", "value")
COLUMNS += ("change_percent",)


def spans(num_blocks: int) -> list[tuple[int, int]]:
    """Returns the first and the last block of each contiguous span of blocks.

    There are `L (L + 1) / 2` spans of `L` blocks.
    """
    return [
        (first, last)
        for first in range(num_blocks)
        for last in range(first, num_blocks)
    ]


def ablate(
    num_blocks: int, evaluate: Callable[..., Any]
) -> dict[tuple[int, int], Any]:
    """Returns a dict from each span to the metric without the span's adapters.

    Args:
        num_blocks: Number of blocks in the encoder.
        evaluate: Function that takes a tuple of the blocks to leave out and
            returns the metric.
    """
    return {
        (first, last): evaluate(tuple(range(first, last + 1)))
        for first, last in spans(num_blocks)
    }


def percent_changes(values: Any, whole: Any) -> np.ndarray:
    """Returns a matrix of changes, in percent of the complete model's metric.

    Args:
        values: Dict that `ablate` returned.
        whole: The metric of the complete model.

    Returns:
        Array `(L, L)` indexed by first and last block, NaN below the diagonal.

    Raises:
        UserError: If `whole` is 0.
    """
    if not whole:
        raise UserError(
            "The metric of the complete model is 0, so there are no changes in "
            "percent of it. Train the run longer, or on more examples."
        )
    size = 1 + max(last for _, last in values)
    matrix = np.full((size, size), np.nan)
    for place, value in values.items():
        matrix[place] = 100 * (value - whole) / abs(whole)
    return matrix


def name_of_span(first: int, last: int, num_blocks: int) -> str:
    """Returns a name for a span of blocks, such as "lower half" or "one".

    Returns "" if the span has no name.

    Args:
        first: Index of the first block left out, -1 for none.
        last: Index of the last block left out, -1 for none.
        num_blocks: Number of blocks in the encoder.
    """
    half = num_blocks // 2
    names = {
        (-1, -1): "none",
        (0, num_blocks - 1): "all",
        (0, half - 1): "lower half",
        (num_blocks - half, num_blocks - 1): "upper half",
    }
    return names.get((first, last), "one" if first == last else "")


@register("span_ablation")
class SpanAblation(RunsAnalysis):
    """Measures a run without the adapters of each contiguous span of blocks.

    Removes the method's layers from blocks i to j of a trained run, for all i
    <= j, and evaluates each variant on the validation set without training
    again. Shows the relative change of the run's first metric (Houlsby et al.
    2019, section 3.6, figure 6). Trained norms stay as they are. For several
    runs, there is a panel for each task, with means over the runs of the task.
    """

    columns = COLUMNS

    def rows(self, run: Any, options: Any) -> list[Any]:
        return [(run.task.name, *row) for row in _of_run(run)]

    def draw(self, table: Any) -> Any:
        spans = table[table["first"] >= 0]
        size = spans["last"].max() + 1
        figure, panels = pictures.make_panels(
            spans, "task", width=1.6 + 0.45 * size, height=1.3 + 0.4 * size
        )
        for axis, task, here in panels:
            image = _draw_matrix(axis, mean_changes(here))
            figure.colorbar(image, ax=axis).set_label(
                f"change of {here.metric.iloc[0]}, %", size=9
            )
            runs = here.run.nunique()
            title = task if runs == 1 else f"{task}, mean of {runs} runs"
            names = ("last block left out", "first block left out")
            drawing.label_axes(axis, *names, title)
        return figure


def mean_changes(spans: Any) -> Any:
    """Returns the matrix of `percent_changes`, averaged over runs."""
    return spans.pivot_table(
        index="first", columns="last", values="change_percent"
    ).to_numpy()


def _of_run(run: Any) -> Iterator[tuple[Any, ...]]:
    """Yields a run's rows of the table, without the first two of `COLUMNS`.

    The first row is for the complete model, and then there is one for each span
    of blocks whose adapters are left out.
    """
    experiment = run.experiment()
    model, metric = experiment.model, run.task.metrics[0]
    if not any(model.slots):
        raise UserError(
            f"{run.folder} was trained with a method that adds nothing to "
            "the blocks, so there is nothing to leave out."
        )
    examples = experiment.examples(run.rows["validation"])

    def evaluate(blocks: Any) -> Any:
        with model.without(blocks):
            # Each span needs a new trainer, because the graph differs.
            trainer = experiment.trainer_of(model)
            return trainer.evaluate(examples)[metric]

    whole = evaluate(())
    size = len(model.slots)
    values = ablate(size, evaluate)
    matrix = percent_changes(values, whole)
    yield -1, -1, name_of_span(-1, -1, size), metric, whole, 0.0
    for (first, last), value in values.items():
        name = name_of_span(first, last, size)
        yield first, last, name, metric, value, matrix[first, last]


def _draw_matrix(axes: Any, matrix: np.ndarray) -> Any:
    size = len(matrix)
    limit = max(1.0, np.nanmax(np.abs(matrix)))
    image = axes.imshow(matrix, cmap="RdBu", vmin=-limit, vmax=limit)
    axes.grid(False)
    for place, value in np.ndenumerate(matrix):
        if np.isfinite(value):
            axes.text(
                *place[::-1],
                f"{value:.1f}",
                ha="center",
                va="center",
                size=7,
                color="white" if abs(value) > 0.6 * limit else "black",
                # Marks single blocks, as in the paper.
                weight="bold" if place[0] == place[1] else "normal",
            )
    blocks = [block + 1 for block in range(size)]
    axes.set_xticks(range(size), blocks)
    axes.set_yticks(range(size), blocks)
    return image
