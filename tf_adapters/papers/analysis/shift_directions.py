"""Draws in two dimensions how the last block moves the vectors of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import sklearn.decomposition

from tf_adapters.common.errors import UserError
from tf_adapters.papers.analysis.support import pictures
from tf_adapters.papers.analysis.support.analysis import at_least_one
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.papers.analysis.support.passes import probe_passes
from tf_adapters.papers.analysis.support.trained_run import RunsAnalysis
from tf_adapters.report import drawing

if TYPE_CHECKING:
    import argparse


COLUMNS = ("run", "method", "text", "position", "label", "state", "x", "y")


def plane(before: np.ndarray, after: np.ndarray) -> list[np.ndarray]:
    """Projects vectors onto the plane of their first two principal components.

    Args:
        before: Array `(n, d)`, the vectors of `n` tokens.
        after: Array `(n, d)`, other vectors of the same tokens.

    Returns:
        Two arrays `(n, 2)`; all `2 n` vectors together define the plane.
    """
    found = sklearn.decomposition.PCA(2, random_state=0).fit_transform(
        np.concatenate([before, after])
    )
    return np.split(found, 2)


@register("shift_directions")
class ShiftDirections(RunsAnalysis):
    """Draws tokens before and after the last block's feed-forward network.

    For a few texts of the validation set, draws each token's vector after the
    last block's first norm and after its second norm, in the plane of the first
    two principal components of all vectors (AdapterBias, section 4.7.1, figure
    5, compared with BitFit). Each class has a color, which is pale for vectors
    before the network.
    """

    columns = COLUMNS

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--texts",
            type=at_least_one,
            default=5,
            help="number of texts, from the first; 5",
        )

    def rows(self, run: Any, options: Any) -> list[Any]:
        return _of_run(run, run.rows["validation"][: options.texts])

    def draw(self, table: Any) -> Any:
        figure, panels = pictures.make_panels(table, "run")
        labels = sorted(dict.fromkeys(table.label))
        for axis, _, here in panels:
            for label, style in zip(labels, drawing.styles(), strict=False):
                for state, alpha in (("before", 0.25), ("after", 1.0)):
                    some = here[(here.label == label) & (here.state == state)]
                    axis.scatter(
                        some.x,
                        some.y,
                        s=14,
                        alpha=alpha,
                        label=f"{label}, {state}",
                        **style,
                    )
            title = f"{here.method.iloc[0]}, {here.text.nunique()} texts"
            names = ("first component", "second component")
            drawing.label_axes(axis, *names, title, legend_outside=True)
        for axis, *_ in panels[:-1]:
            axis.get_legend().remove()
        return figure


def check_classes(run: Any) -> None:
    """Raises `UserError` if a run's texts have no classes."""
    if run.task.head != "classification":
        raise UserError(
            f"{run.folder} is a run of task `{run.task.name}`, whose texts "
            "have no classes to tell apart."
        )


def _of_run(run: Any, rows: Any) -> list[tuple[Any, Any, Any, Any, str, Any]]:
    check_classes(run)
    experiment = run.experiment()
    found = {"before": [], "after": []}
    tokens = []
    for texts, inputs, states in probe_passes(
        experiment, rows, before_and_after
    ):
        mask = inputs["padding_mask"].numpy().astype(bool)
        for name, state in zip(found, states, strict=True):
            found[name].append(state.numpy()[mask])
        tokens += [
            (int(texts[row]), int(place)) for row, place in np.argwhere(mask)
        ]
    before, after = plane(*(np.concatenate(some) for some in found.values()))
    return [
        (
            *(run.label, text, position),
            run.task.labels[rows[text]["label"]],
            *(state, *point),
        )
        for state, points in (("before", before), ("after", after))
        for (text, position), point in zip(tokens, points, strict=True)
    ]


def before_and_after(outputs: Any) -> tuple[Any, Any]:
    """Returns the hidden states after the last block's first and second norm.

    `outputs` are the encoder's outputs, including probes.
    """
    before = outputs["probes"][-1]["attention_norm"]["output"]
    return before, outputs["sequence_output"]
