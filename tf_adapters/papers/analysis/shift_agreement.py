"""Measures how similar the last block's shifts of tokens are.

Compares tokens from texts of the same class with tokens from texts of different
classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tf_adapters.papers.analysis import shift_directions
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.papers.analysis.support.passes import probe_passes
from tf_adapters.papers.analysis.support.trained_run import RunsAnalysis
from tf_adapters.report import drawing

COLUMNS = ("run", "task", "method", "same_label", "different_labels", "gap")
_SHOWN = {"same_label": "one label", "different_labels": "two labels"}


def sum_of_directions(before: np.ndarray, after: np.ndarray) -> Any:
    """Returns the sum of the unit vectors along which a text's tokens move.

    Args:
        before: Array `(tokens, d)`, the tokens' vectors before the move.
        after: Array `(tokens, d)`, the tokens' vectors after it.
    """
    shifts = np.asarray(after, "float64") - np.asarray(before, "float64")
    return np.sum(shifts / np.linalg.norm(shifts, axis=1)[:, None], axis=0)


def agreement(sums: Any, counts: Any, labels: Any) -> tuple[Any, ...]:
    """Returns the mean cosines between shifts of tokens from different texts.

    Args:
        sums: Array `(texts, d)`, from `sum_of_directions`.
        counts: Number of tokens of each text.
        labels: Class of each text.

    Returns:
        The mean over pairs of tokens from texts of the same class, and the mean
        over pairs from texts of different classes.
    """
    cosines = np.asarray(sums) @ np.asarray(sums).T
    pairs = np.outer(counts, counts)
    labels = np.asarray(labels)
    same = labels[:, None] == labels[None]
    other = ~same
    np.fill_diagonal(same, False)
    return tuple(
        cosines[some].sum() / pairs[some].sum() for some in (same, other)
    )


@register("shift_agreement")
class ShiftAgreement(RunsAnalysis):
    """Measures how similarly the last block moves tokens, by class.

    Tests the statement of AdapterBias's figure 5: BitFit moves all tokens in
    the same direction, and AdapterBias moves tokens of different classes in
    different directions. Computes the mean cosine between the shifts of tokens
    from two texts of the validation set, once for texts of the same class and
    once for texts of different classes, and the gap between the two means. A
    shift is the difference between the outputs of the last block's first and
    second norm, as in `shift_directions`.
    """

    columns = COLUMNS

    def rows(self, run: Any, options: Any) -> Iterator[Any]:
        same, other = _of_run(run)
        yield run.task.name, run.label, same, other, same - other

    def draw(self, table: Any) -> Any:
        figure, ((axes,),) = drawing.make_figure()
        methods = table.groupby("method", sort=False)[list(_SHOWN)]
        means, errors = methods.mean(), methods.sem()
        series = [
            (f"texts of {name}", means[column], errors[column])
            for column, name in _SHOWN.items()
        ]
        drawing.draw_bars(axes, series, 0.36, 0.34, capsize=3)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_xticks(range(len(means)), means.index)
        runs = table.method.value_counts().max()
        drawing.label_axes(
            axes,
            "",
            "mean cosine between shifts",
            "" if runs == 1 else f"{runs} runs a method, bars: standard error",
            legend_outside=True,
        )
        return figure


def _of_run(run: Any) -> tuple[Any, ...]:
    shift_directions.check_classes(run)
    rows = run.rows["validation"]
    experiment = run.experiment()
    sums, counts, labels = [], [], []
    for texts, inputs, states in probe_passes(
        experiment, rows, shift_directions.before_and_after
    ):
        masks = inputs["padding_mask"].numpy().astype(bool)
        before, after = (state.numpy() for state in states)
        for place, mask in enumerate(masks):
            sums.append(
                sum_of_directions(before[place][mask], after[place][mask])
            )
            counts.append(mask.sum())
            labels.append(rows[int(texts[place])]["label"])
    return agreement(sums, counts, labels)
