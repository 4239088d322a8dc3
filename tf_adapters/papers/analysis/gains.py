"""Compares the accuracies of a study's methods with a baseline's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import pandas as pd

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.text_files import replace_text
from tf_adapters.papers.analysis.support import study_runs
from tf_adapters.papers.analysis.support import trained_run
from tf_adapters.papers.analysis.support.analysis import Analysis
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.report import drawing
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import predictions

if TYPE_CHECKING:
    import argparse


# Accuracies are means over seeds, from 0 to 1. Deviations are sample standard
# deviations over seeds, NaN for one seed. The difference from the baseline and
# its standard error over validation examples are NaN without a baseline's run.
COLUMNS = ("task", "train_examples", "method", "accuracy", "deviation")
COLUMNS += ("difference", "standard_error", "seeds")


def compare_methods(
    hits: Any, sizes: dict[str, Any], baseline: str
) -> pd.DataFrame:
    """Compares the accuracy of methods with the accuracy of a baseline.

    Returns a `DataFrame` with `COLUMNS` and a row for each task and method.

    Args:
        hits: Dict from `(task, method)` to a dict from seed to an array with 1
            for each validation example that was predicted correctly, else 0.
        sizes: Dict from task to its number of training examples.
        baseline: Name of the method that the others are compared with.

    Raises:
        UserError: If runs to compare have different validation sets.
    """
    rows = []
    for (task, method), by_seed in hits.items():
        scores = [np.mean(hits) for hits in by_seed.values()]
        deviation = np.std(scores, ddof=1) if len(scores) > 1 else np.nan
        difference, error = _paired(by_seed, hits.get((task, baseline), {}))
        numbers = np.mean(scores), deviation, difference, error, len(scores)
        rows.append((task, sizes[task], method, *numbers))
    return pd.DataFrame(rows, columns=COLUMNS)


def _paired(by_seed: Any, base: Any) -> tuple[Any, ...]:
    """Returns a method's mean gain over a baseline, and its standard error.

    Both arguments are dicts from seed to hits, as in `compare_methods`. The
    gain on an example is the mean over common seeds. The standard error is over
    examples.
    """
    both = [seed for seed in by_seed if seed in base]
    if any(len(by_seed[seed]) != len(base[seed]) for seed in both):
        raise UserError(
            "Two runs of the same task and seed have validation sets of "
            "different sizes, so they cannot be compared example by example."
        )
    if not both:
        return np.nan, np.nan
    differences = np.mean(
        [np.subtract(by_seed[seed], base[seed]) for seed in both], axis=0
    )
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    return np.mean(differences), error


def _by_size(gains: Any) -> Any:
    """Returns one row for each task, sorted by the size of its training set."""
    tasks = gains.drop_duplicates("task")
    return tasks.sort_values(["train_examples", "task"])


def markdown(gains: Any, baseline: str) -> Any:
    """Returns a Markdown table with a row for each method.

    The columns are tasks. The task with the smallest training set comes first.

    Args:
        gains: Result of `compare_methods`.
        baseline: Name of the method whose differences are left out.
    """
    tasks = _by_size(gains)
    texts = gains.assign(text=[_cell(g, baseline) for g in gains.itertuples()])
    table = texts.pivot(index="method", columns="task", values="text")
    table = table.reindex(gains.method.unique(), columns=tasks.task).fillna("")
    table.columns = [
        f"{task} ({size:,})"
        for task, size in zip(tasks.task, tasks.train_examples, strict=True)
    ]
    return table.rename("`{}`".format).to_markdown(
        tablefmt="github", disable_numparse=True
    )


def _cell(gain: Any, baseline: Any) -> str:
    text = f"{100 * gain.accuracy:.1f}"
    if gain.seeds > 1:
        text += f" ± {100 * gain.deviation:.1f}"
    if gain.method == baseline or np.isnan(gain.difference):
        return text
    error = 100 * gain.standard_error
    return f"{text} ({100 * gain.difference:+.1f} ± {error:.1f})"


def evaluate_runs(study_dir: Path) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Returns a study's `hits` and `sizes`, the arguments of `compare_methods`.

    Raises:
        UserError: If the folder holds no study, if a task has no classes, or if
            two runs have the same task, method and seed.
    """
    hits, sizes = {}, {}
    runs = study_runs.load_study_runs(study_dir, ("task", "method"))
    for _, row in runs.iterrows():
        folder = study_runs.run_folder(study_dir, row)
        own = earlier_runs.folder_of_task(folder, row["task"])
        task, right, size = _hits(own)
        sizes[task] = size
        key = (task, row["method"])
        by_seed = hits.setdefault(key, {})
        seed = str(row.get("seed", 0))
        if seed in by_seed:
            raise UserError(
                f"Two runs of the study are of task `{task}`, method "
                f"`{row['method']}` and seed {seed}, the second one "
                f"{row['run']}. Only studies that differ in these can be "
                "compared."
            )
        by_seed[seed] = right
        print(f"{task}, {row['method']}: {np.mean(right):.4f}", flush=True)
    return hits, sizes


def _hits(folder: Path) -> tuple[str, Any, int]:
    run = trained_run.load_run(folder)
    task = run.task
    if task.kind.label not in ("class", "choice"):
        raise UserError(
            f"Accuracies are compared; task `{task.name}` is a {task.head}."
        )
    stored = predictions.load_predictions(folder, "validation")
    right = _of_model(run) if stored is None else _of_predictions(stored)
    return task.name, right, len(run.rows["train"])


def _of_predictions(stored: Any) -> np.ndarray:
    return np.array(stored.are_right(), float)


def _of_model(run: Any) -> Any:
    """Returns an array with a 1 or 0 for each validation row of a run.

    It is 1 if the run's prediction is right.
    """
    task, rows = run.task, run.rows["validation"]
    labels = [row["label"] for row in rows]
    if task.labels:
        labels = [task.labels[label] for label in labels]
    predicted = [row["label"] for row in run.experiment().predict(rows)]
    return np.equal(predicted, labels).astype(float)


@register("gains")
class Gains(Analysis):
    """Compares the accuracy of a study's methods with a baseline, by example.

    Takes the stored predictions of every finished run on its validation set, or
    evaluates the run if it stored none. Subtracts the accuracy of the
    baseline's run of the same task and seed (Pfeiffer et al. 2021, figure 3).
    Black bars are the standard error of the difference over validation
    examples. Table 1 of the paper has standard deviations over seeds instead.
    """

    reads = "study_dir"

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--baseline", required=True, help="method at zero")

    def table(self, options: Any) -> Any:
        (study_dir,) = options.folders
        hits, sizes = evaluate_runs(study_dir)
        methods = {method for _, method in hits}
        if options.baseline not in methods:
            raise UserError(
                f"No finished run of `{cut(options.baseline)}`. Methods of the "
                f"study: {', '.join(sorted(methods))}"
            )
        gains = compare_methods(hits, sizes, options.baseline)
        text = markdown(gains, options.baseline)
        replace_text(Path(study_dir) / "gains.md", text + "\n")
        print(text)
        return gains.assign(baseline=options.baseline)

    def draw(self, table: Any) -> Any:
        shown = table[
            table.difference.notna() & (table.method != table.baseline)
        ]
        order = _by_size(shown)
        names = list(order.task)
        figure, ((axes,),) = drawing.make_figure(
            width=3.2 + 1.1 * max(1, len(names))
        )
        series = []
        for method, rows in shown.groupby("method", sort=False):
            own = rows.set_index("task").reindex(names)
            error = 100 * own.standard_error
            series.append((method, 100 * own.difference, error))
        width = 0.8 / max(1, len(series))
        drawing.draw_bars(axes, series, width, width, capsize=2)
        axes.axhline(0, color="black", linewidth=0.8)
        labels = [
            f"{task}\n{size:,}"
            for task, size in zip(names, order.train_examples, strict=True)
        ]
        axes.set_xticks(range(len(names)), labels)
        drawing.label_axes(
            axes,
            "task and its training examples",
            f"accuracy minus that of {table.baseline[0]}, points",
            "black: standard error over examples",
            legend_outside=True,
        )
        return figure
