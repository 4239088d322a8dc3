"""Plots loss and metric in other languages over training steps."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.data.rows import sampling
from tf_adapters.data.rows.sources import find_source
from tf_adapters.papers.analysis.support import pictures
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.papers.analysis.support.trained_run import RunsAnalysis
from tf_adapters.report import drawing
from tf_adapters.tasks.languages import in_language

COLUMNS = ("run", "method", "seed", "step", "languages", "loss", "score")
COLUMNS += ("last_loss",)


def transfer_rows(facts: Any, by_step: dict[str, Any]) -> list[Any]:
    """Returns a row per step, with the mean loss and score over languages.

    Args:
        facts: Values of the columns `method` and `seed`.
        by_step: Dict from step to a list of `(loss, score)`, one for each
            language.
    """
    rows = []
    for step, values in sorted(by_step.items()):
        losses, scores = zip(*values, strict=True)
        loss = sum(losses) / len(losses)
        last = loss if step == max(by_step) else None
        score = sum(scores) / len(scores)
        rows.append((*facts, step, len(values), loss, score, last))
    return rows


@register("transfer_curves")
class TransferCurves(RunsAnalysis):
    """Plots loss and metric in other languages over training steps.

    Evaluates each snapshot of a run (`train.snapshot_steps`) on the validation
    set of each of its `data.eval_languages` except the training language, and
    averages over the languages (He et al. 2021, appendix A.3, figure 10).
    """

    columns = COLUMNS

    def rows(self, run: Any, options: Any) -> list[Any]:
        return transfer_rows((run.label, run.config.seed), _by_step(run))

    def draw(self, table: Any) -> Any:
        figure, axes = drawing.make_figure(columns=2)
        for column, axis in zip(("loss", "score"), axes.flat, strict=True):
            methods = table.groupby("method", sort=False)
            for method, lines, style in pictures.styled(methods):
                means = lines.groupby("step")[column].mean()
                axis.plot(means.index, means, label=method, **style)
            number = table.languages.iloc[0]
            words = "one other language"
            if number > 1:
                words = f"mean over languages ({number})"
            drawing.label_axes(axis, "step", f"{column}, {words}")
        return figure


def _by_step(run: Any) -> dict[Any, Any]:
    """Returns a dict from step to `(loss, metric)` pairs, one per language."""
    from tf_adapters.runs.experiment import Experiment
    from tf_adapters.runs.left_files import SNAPSHOTS

    snapshots = sorted((Path(run.folder) / SNAPSHOTS).glob("*"))
    if not snapshots:
        raise UserError(
            f"{run.folder} has no snapshots. Train with "
            "--params_override=train.snapshot_steps=500 or so."
        )
    rows = _rows_of_languages(run)
    train = dataclasses.replace(run.config.train, evaluate_loss=True)
    config = dataclasses.replace(run.config, train=train)
    found = {}
    for snapshot in snapshots:
        experiment = Experiment(config, run.task, snapshot)
        metrics = [
            experiment.trainer.evaluate(experiment.examples(own))
            for own in rows.values()
        ]
        name = run.task.metrics[0]
        found[int(snapshot.name)] = [(m["loss"], m[name]) for m in metrics]
    return found


def _rows_of_languages(run: Any) -> dict[Any, Any]:
    """Returns a dict from each language to its validation rows.

    The language that the run was trained in is left out.
    """
    data, languages = run.config.data, run.task.languages
    if languages is None or not data.eval_languages:
        raise UserError(
            f"{run.folder} was not evaluated in other languages. Train with "
            "--eval_languages=all or some of the task's."
        )
    names = data.eval_languages
    names = languages.names if names == ("all",) else names
    found = {}
    for name in names:
        task = in_language(run.task, name)
        if name.split("_")[0] == languages.trained:
            continue
        source = find_source(task, "validation", data.data_dir)
        if source.may_have_labels:
            most = data.max_validation_examples
            found[name] = sampling.at_most(source.rows(), most)
    if not found:
        raise UserError(
            f"{run.folder} was evaluated in no other language with labels for "
            f"validation. Its `data.eval_languages`: {', '.join(names)}. Train "
            "with --eval_languages=all or other languages of the task."
        )
    return found
