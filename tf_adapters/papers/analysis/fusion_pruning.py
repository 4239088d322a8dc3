"""Measures a fusion without the adapters that have the lowest weights."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import pandas as pd

from tf_adapters.common.errors import UserError
from tf_adapters.models import fusion_model
from tf_adapters.papers.analysis import fusion_activations
from tf_adapters.papers.analysis.support import passes
from tf_adapters.papers.analysis.support.analysis import Analysis
from tf_adapters.papers.analysis.support.analysis import at_least_one
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.report import drawing

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from tf_adapters.runs.experiment import Experiment


COLUMNS = ("kept", "adapters", "metric", "value", "speed", "low", "high")
_TIMED_ROWS = 256
# Smallest range of the metric's axis. A smaller one would magnify noise.
_LEAST_RANGE = 0.1


def ranking(weights: Any, names: Any) -> list[Any]:
    """Returns the names of a fusion's members, highest mean weight first.

    Args:
        weights: Result of `fusion_activations.mean_weights`.
        names: The members' names in their order in the fusion.
    """
    means = np.mean(list(weights.values()), axis=0)
    return [names[place] for place in np.argsort(-means, kind="stable")]


def prune_one_by_one(
    experiment: Experiment, ranked: Any, rows: Any, turns: int = 5
) -> list[Any]:
    """Measures a fusion as its members are removed one by one.

    Returns a list of rows with `COLUMNS`. The first row is the complete fusion.

    Args:
        experiment: `Experiment` of the whole fusion.
        ranked: Result of `ranking`. Members are removed from its end.
        rows: Validation rows.
        turns: Number of timings of each fusion. Each follows a timing of the
            complete fusion.
    """
    examples = experiment.examples(rows)
    few = experiment.examples(rows[:_TIMED_ROWS])
    metric = experiment.task.metrics[0]
    results = []
    for kept in range(len(ranked), 0, -1):
        names, speed = ranked[:kept], (1.0, 1.0, 1.0)
        trainer = experiment.trainer
        if kept < len(ranked):
            smaller = fusion_model.pruned(experiment.model, names)
            trainer = experiment.trainer_of(smaller)
            whole = experiment.trainer, few
            speed = passes.compare_speeds(whole, (trainer, few), turns)
        value = trainer.evaluate(examples)[metric]
        results.append((kept, " ".join(names), metric, value, *speed))
    return results


def save(experiment: Experiment, names: Any, folder: Path, value: Any) -> None:
    """Writes a run folder with a fusion of only some of its members.

    `names` are the members to keep, and `value` is the metric of the smaller
    fusion on the validation set.
    """
    from tf_adapters.runs import run_facts
    from tf_adapters.runs.run_folder import RunFolder

    method = experiment.config.method
    folders = dict(
        zip(experiment.model.method.adapters, method.adapters, strict=True)
    )
    kept = [name for name in folders if name in names]
    method = dataclasses.replace(
        method, adapters=tuple(folders[name] for name in kept), subset=None
    )
    config = dataclasses.replace(experiment.config, method=method)
    metric = experiment.task.metrics[0]
    details = {
        "task": experiment.task.name,
        "text_fields": list(experiment.task.text_fields),
        "max_length": config.data.max_length,
        "validation": {metric: value},
    }
    smaller = fusion_model.pruned(experiment.model, kept)
    with contextlib.closing(RunFolder(folder, config, {})) as run:
        run.save_adapter(smaller, details)
        result = run_facts.facts(config, smaller)
        result |= {"kept_members": kept, "validation": details["validation"]}
        run.save_result(result)


def _check(keep: Any, number: Any) -> None:
    if keep is not None and not 1 <= keep <= number:
        raise UserError(
            f"--keep must be one of 1 to {number}, the number of adapters. "
            f"Received: {keep}"
        )


@register("fusion_pruning")
class FusionPruning(Analysis):
    """Measures the metric and speed of a fusion as its adapters are removed.

    Ranks the members by their softmax weight, averaged over the tokens of the
    training set and all positions of the fusion. Removes the lowest-ranked
    member, then the lowest two, and so on, and evaluates each smaller fusion on
    the validation set (Pfeiffer et al. 2021, section 8.2, after Rueckle et al.
    2021, arXiv:2010.11918). Measures speeds as `adapter_drop` does. With
    `--keep`, also writes a run folder of a smaller fusion, for
    `--mode=eval|predict|export`.
    """

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--keep", type=at_least_one, help="how many adapters to keep"
        )
        parser.add_argument("--keep_in", help="run folder to write, for --keep")
        parser.add_argument(
            "--turns", type=at_least_one, default=5, help="timings of each; 5"
        )

    def table(self, options: Any) -> pd.DataFrame:
        if (options.keep is None) != (options.keep_in is None):
            raise UserError("--keep and --keep_in go together.")
        run, experiment = fusion_activations.load_fusion(options.folders[0])
        weights = fusion_activations.of_experiment(
            experiment, run.rows["train"]
        )
        ranked = ranking(weights, experiment.model.method.adapters)
        _check(options.keep, len(ranked))
        rows = prune_one_by_one(
            experiment, ranked, run.rows["validation"], options.turns
        )
        if options.keep is not None:
            value = rows[len(ranked) - options.keep][3]
            save(experiment, ranked[: options.keep], options.keep_in, value)
        return pd.DataFrame(rows, columns=COLUMNS)

    def draw(self, table: Any) -> Any:
        figure, ((axes,),) = drawing.make_figure()
        style = next(drawing.styles())
        axes.plot(table.kept, table.value, **style)
        middle = (table.value.min() + table.value.max()) / 2
        half = 0.55 * max(_LEAST_RANGE, np.ptp(table.value))
        axes.set_ylim(middle - half, middle + half)
        axes.set_xticks(table.kept)
        metric = f"validation {table.metric[0]}"
        drawing.label_axes(axes, "adapters left in the fusion", metric)
        return figure
