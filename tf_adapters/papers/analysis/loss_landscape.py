"""Computes the loss on a line through the weights before and after training."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.papers.analysis.support.analysis import at_least_one
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.papers.analysis.support.trained_run import RunsAnalysis
from tf_adapters.report import drawing

if TYPE_CHECKING:
    import argparse

    from tf_adapters.tasks.task import Task


COLUMNS = ("run", "task", "method", "seed", "split", "alpha", "distance")
COLUMNS += ("loss", "width", "width_in_distance")
# Largest number of training examples for the loss.
_TRAIN_EXAMPLES = 1000
# Loss at the edge of the valley minus the loss of the trained weights.
_EDGE = 0.1


def alphas(points: int = 20) -> np.ndarray:
    """Returns evenly spaced values of alpha from -2 to 2, and also 0 and 1."""
    return np.unique(np.r_[np.linspace(-2, 2, points), 0, 1])


def line(
    before: dict[str, Any],
    after: dict[str, Any],
    loss: Callable[..., Any],
    steps: Iterable[Any],
) -> list[Any]:
    """Returns the loss at `before + alpha (after - before)` for each alpha.

    Args:
        before: Dict from the name of a weight to its value before training.
        after: Dict from the same names to the values after training.
        loss: Function that takes such a dict and returns the loss.
        steps: Iterable of alphas.
    """
    return [
        loss({n: before[n] + a * (after[n] - before[n]) for n in before})
        for a in steps
    ]


def norm(values: Any) -> float:
    """Returns the L2 norm over all arrays in a dict."""
    squares = (np.sum(np.square(v, dtype="float64")) for v in values.values())
    return float(np.sqrt(sum(squares)))


def width(steps: Any, losses: Any) -> Any:
    """Returns the width, in alpha, of the loss's valley around `alpha = 1`.

    The loss in the valley is at most 0.1 above the loss at 1. The valley's ends
    are interpolated between steps.
    """
    steps, losses = np.asarray(steps), np.asarray(losses)
    (one,) = np.flatnonzero(steps == 1)
    edge = losses[one] + _EDGE
    ends = [
        _crossing(steps[one::way], losses[one::way], edge) for way in (-1, 1)
    ]
    return ends[1] - ends[0]


def _crossing(steps: Any, losses: Any, edge: Any) -> Any:
    """Returns the interpolated step at which the loss first exceeds `edge`.

    If no loss exceeds `edge`, returns the last step. A loss of NaN exceeds it.
    """
    losses = np.where(np.isnan(losses), np.inf, losses)
    above = np.flatnonzero(losses > edge)
    if not len(above):
        return steps[-1]
    i = above[0]
    part = (edge - losses[i - 1]) / (losses[i] - losses[i - 1])
    return steps[i - 1] + part * (steps[i] - steps[i - 1])


@register("loss_landscape")
class LossLandscape(RunsAnalysis):
    """Plots the loss on a line through the weights before and after training.

    The loss is `L(t0 + a (t1 - t0))` for `a` from -2 to 2. `t0` are the run's
    initial weights, including head and adapters, and `t1` its final weights;
    only trained weights move (He et al. 2021, section 5, figure 6). The paper
    does not say which data it uses; here the loss is shown for at most 1,000
    training examples, and for the validation set. Since methods move weights by
    very different distances, a second panel shows the distance from `t1`
    instead of `a`. Rows with `a = 1` also have the width of the valley around
    `t1`, in which the loss is at most 0.1 higher than at `t1`.
    """

    columns = COLUMNS

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--points", type=at_least_one, default=20, help="steps of alpha; 20"
        )

    def rows(self, run: Any, options: Any) -> Iterator[Any]:
        steps = alphas(options.points)
        moved, losses = _of_run(run, steps)
        for split, values in losses.items():
            wide = width(steps, values)
            print(
                f"{run.folder}, {split}: |t1 - t0| = {moved:.4g}, width "
                f"{wide:.3g}, or {wide * moved:.3g} in distance"
            )
            facts = run.task.name, run.label, run.config.seed, split
            for alpha, value in zip(steps, values, strict=True):
                widths = (wide, wide * moved) if alpha == 1 else (None,) * 2
                yield *facts, alpha, (alpha - 1) * moved, value, *widths

    def draw(self, table: Any) -> Any:
        tasks = list(dict.fromkeys(table.task))
        figure, axes = drawing.make_figure(len(tasks), 2, sharey="row")
        for line, task in zip(axes, tasks, strict=True):
            _draw_task(line, table[table.task == task], task)
        return figure


def _draw_task(axes: Any, here: Any, task: Task) -> None:
    """Plots the losses of a task's runs against alpha, and against distance."""
    names = dict(zip(here.method.unique(), drawing.styles(), strict=False))
    labeled = set()
    for (_, method, split), line in here.groupby(
        ["run", "method", "split"], sort=False
    ):
        label = f"{method}, {split}"
        for axis, x in zip(axes, ("alpha", "distance"), strict=True):
            axis.plot(
                line[x],
                line.loss,
                label=None if label in labeled else label,
                linestyle="-" if split == "train" else "--",
                markersize=3,
                **names[method],
            )
        labeled.add(label)
    for axis in axes:
        axis.set_yscale("log")
    for place in (0, 1):
        axes[0].axvline(place, color="gray", linewidth=0.8)
    drawing.label_axes(axes[0], "alpha: 0 before tuning, 1 after", "loss", task)
    drawing.label_axes(axes[1], "distance from the tuned weights", "", task)


def _of_run(run: Any, steps: Any) -> tuple[float, dict[str, list[Any]]]:
    """Returns a run's distance and losses, see `LossLandscape`.

    The distance is how far training moved the run's weights. The losses are a
    dict from split to a list with the loss at each alpha in `steps`.
    """
    from tf_adapters.runs.experiment import Experiment
    from tf_adapters.training.mean_loss import mean_loss

    after = _values(run.experiment().model.trained_variables())
    # The same seed, encoder and settings give the weights before training.
    experiment = Experiment(run.config, run.task, train_rows=run.rows["train"])
    variables = experiment.model.trained_variables()
    before = _values(variables)
    if {n: v.shape for n, v in before.items()} != {
        n: v.shape for n, v in after.items()
    }:
        raise UserError(
            f"{run.folder} ended with other weights than it began with, so "
            "there is no line between them."
        )
    examples = experiment.examples_by_split(
        {
            "train": run.rows["train"][:_TRAIN_EXAMPLES],
            "validation": run.rows["validation"],
        }
    )

    def loss_on(some: Any) -> Any:
        def loss(values: Any) -> Any:
            for name, value in values.items():
                variables[name].assign(value)
            outputs = experiment.trainer.predict(some)
            return mean_loss(experiment.model.head, outputs, some)

        return loss

    losses = {
        split: line(before, after, loss_on(some), steps)
        for split, some in examples.items()
    }
    return norm({n: after[n] - before[n] for n in before}), losses


def _values(variables: Any) -> dict[Any, Any]:
    return {name: variable.numpy() for name, variable in variables.items()}
