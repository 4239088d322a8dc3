"""Measures a model's metric and speed without the adapters of some blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import pandas as pd

from tf_adapters.common.errors import UserError
from tf_adapters.papers.analysis.support import passes
from tf_adapters.papers.analysis.support import trained_run
from tf_adapters.papers.analysis.support.analysis import Analysis
from tf_adapters.papers.analysis.support.analysis import at_least_one
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.report import drawing

if TYPE_CHECKING:
    import argparse

    from tf_adapters.data.examples import Examples
    from tf_adapters.runs.experiment import Experiment
    from tf_adapters.training.trainer import Trainer


COLUMNS = ("blocks", "left_out", "metric", "value", "speed", "low", "high")
_TIMED_ROWS = 256


def variants(blocks: Any) -> list[Any]:
    """Lists the variants of a model that leave out adapters of some blocks.

    A variant is a pair `(name, blocks)`. `blocks` is a tuple of the blocks
    whose adapters are left out. `name` is "none" for the complete model,
    "first" if they are the first blocks, and "last" if they are the last ones.

    Args:
        blocks: Tuple of the indices of the blocks with adapters, ascending.
    """
    some = range(1, len(blocks) + 1)
    first = [("first", blocks[:k]) for k in some]
    last = [("last", blocks[-k:]) for k in some]
    return [("none", ()), *first, *last[:-1]]


def drop_one_by_one(
    make: Callable[..., Any], rows: Any, turns: int = 5
) -> list[Any]:
    """Measures a model as adapters are removed from one block after another.

    Returns a list of rows with `COLUMNS`, one for each of `variants`. The first
    row is the complete model.

    Args:
        make: Function that takes the blocks to leave out and returns an
            `Experiment`. Two experiments are in memory at a time.
        rows: Validation rows.
        turns: Number of timings of each variant. Each follows a timing of the
            complete model.

    Raises:
        UserError: If the model has no adapters in any block.
    """
    whole = make(())
    timed = _timed(whole, rows)
    found = []
    slots = whole.model.slots
    there = tuple(i for i, of_block in enumerate(slots) if of_block)
    if not there:
        raise UserError(
            "The run was trained with a method that adds nothing to the "
            "blocks, so there is nothing to leave out."
        )
    for which, blocks in variants(there):
        experiment = make(blocks) if blocks else whole
        metric = experiment.task.metrics[0]
        value = experiment.trainer.evaluate(experiment.examples(rows))[metric]
        speed = (1.0, 1.0, 1.0)
        if experiment is not whole:
            speed = passes.compare_speeds(
                timed, _timed(experiment, rows), turns
            )
        found.append((which, len(blocks), metric, value, *speed))
    return found


def _timed(experiment: Experiment, rows: Any) -> tuple[Trainer, Examples]:
    return experiment.trainer, experiment.examples(rows[:_TIMED_ROWS])


@register("adapter_drop")
class AdapterDrop(Analysis):
    """Measures a run without the adapters of its first or last blocks.

    For every k, removes the adapters, or the fusion, from the first k blocks of
    a trained run, and from the last k. Evaluates each variant on the validation
    set without training again (Rueckle et al. 2021, arXiv:2010.11918, sections
    3 and 4; the outlook of Pfeiffer et al. 2021, section 8.2). Also measures
    the speed of inference relative to the complete model: each variant and the
    complete model take turns on at most 256 examples, and the table has the
    median and the quartiles over the turns.
    `--params_override=method.leave_out=[0,1]` leaves out the adapters of these
    two blocks in training and in `--mode=eval|predict|export`.
    """

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--turns", type=at_least_one, default=5, help="timings of each; 5"
        )

    def table(self, options: Any) -> pd.DataFrame:
        run = trained_run.load_run(options.folders[0])

        def make(blocks: Any) -> Any:
            # Each experiment has its own encoder, since the run may have
            # trained the encoder's norms.
            experiment = run.experiment()
            experiment.model.leave_out(blocks)
            return experiment

        rows = drop_one_by_one(make, run.rows["validation"], options.turns)
        return pd.DataFrame(rows, columns=COLUMNS)

    def draw(self, table: Any) -> Any:
        figure, ((metric, speed),) = drawing.make_figure(columns=2)
        whole = table[table.blocks == "none"]
        everything = table.loc[[table.left_out.idxmax()]]
        for which, style in zip(
            ("first", "last"), drawing.styles(), strict=False
        ):
            # The model without any adapters belongs to both lines.
            some = table[table.blocks == which]
            line = pd.concat([whole, some, everything]).drop_duplicates(
                "left_out"
            )
            line = line.sort_values("left_out")
            metric.plot(line.left_out, line.value, label=which, **style)
            spread = (line.speed - line.low, line.high - line.speed)
            speed.errorbar(
                line.left_out, line.speed, np.array(spread), capsize=2, **style
            )
        # Error bars do not set the scale: a turn may be slow because the
        # machine was busy.
        speed.set_ylim(0, 1.3 * table.speed.max())
        blocks = "blocks without adapters"
        drawing.label_axes(metric, blocks, f"validation {table.metric[0]}")
        drawing.label_axes(speed, blocks, "speed, whole model = 1")
        return figure
