"""Shows scores in several languages after training in one language."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.papers.analysis.support import pictures
from tf_adapters.papers.analysis.support import study_runs
from tf_adapters.papers.analysis.support.analysis import Analysis
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.report import drawing
from tf_adapters.tasks.languages import AVERAGES

if TYPE_CHECKING:
    import pandas as pd


_PREFIX = "transfer/"


def scores(runs: pd.DataFrame) -> Any:
    """Returns a row for each run and each language or average over languages.

    Args:
        runs: `DataFrame` of a study's finished runs.

    Returns:
        `DataFrame` with the columns `run`, the settings of the study's grid,
        `language`, and `score` in points.
    """
    names = list(runs.columns)
    # In runs.csv, the grid's settings are between the state and the metric.
    settings = names[names.index("state") + 1 : names.index("metric")]
    languages = [name for name in names if name.startswith(_PREFIX)]
    found = runs.melt(
        id_vars=["run", *settings],
        value_vars=languages,
        var_name="language",
        value_name="score",
    ).dropna(subset="score")
    language = found.language.str.removeprefix(_PREFIX)
    return found.assign(language=language, score=100 * found.score)


def lines_of(table: pd.DataFrame) -> pd.Series:
    """Returns the line of a picture to which each row of `scores` belongs.

    That is the method and, if runs of a method differ in a setting other than
    the seed, as in the share of training examples, this setting.

    Args:
        table: Rows of one task.
    """
    usual = ("run", "task", "method", "seed", "language", "score")
    methods = table.groupby("method")
    lines = table.method.astype(str)
    for name in (name for name in table.columns if name not in usual):
        if (methods[name].nunique(dropna=False) > 1).any():
            short = name.rpartition(".")[2]
            lines += f", {short} " + table[name].map(str)
    return lines


@register("transfer")
class Transfer(Analysis):
    """Shows the score in each language, and averages over languages.

    Reads a study whose runs were evaluated in several languages
    (`data.eval_languages`). The averages are over all languages, over all but
    the training language (`target`), and over languages far from the training
    language (`distant`), as in He et al. 2021, tables 3, 4 and 12 to 15. There
    is a panel for each task, and the points of each method have one color. Bars
    are the standard error over runs.
    """

    reads = "study_dir"

    def table(self, options: Any) -> Any:
        (folder,) = options.folders
        runs = study_runs.load_study_runs(folder, ("task", "method"))
        if f"{_PREFIX}all" not in runs:
            raise UserError(
                f"No run of the study in {folder} was evaluated in several "
                "languages. Set `data.eval_languages`, [all] for example."
            )
        return scores(runs)

    def draw(self, table: Any) -> Any:
        tasks = list(dict.fromkeys(table.task))
        number = table.groupby("task").language.nunique().max()
        figure, axes = drawing.make_figure(
            rows=len(tasks), width=max(5.6, 2.9 + 0.3 * number)
        )
        for axis, task in zip(axes.flat, tasks, strict=True):
            here = table[table.task == task]
            names = list(dict.fromkeys(here.language))
            averages = [name for name in AVERAGES if name in names]
            order = [*averages, *(n for n in names if n not in AVERAGES)]
            lines = here.assign(line=lines_of(here)).groupby("line", sort=False)
            for name, line, style in pictures.styled(lines):
                groups = line.groupby("language").score
                found = groups.agg(["mean", "sem"]).reindex(order)
                axis.errorbar(
                    range(len(order)),
                    found["mean"],
                    found["sem"],
                    linestyle="none",
                    capsize=2,
                    label=name,
                    **style,
                )
            axis.set_xticks(range(len(order)), order, rotation=90)
            axis.axvline(len(averages) - 0.5, color="gray", linewidth=0.8)
            drawing.label_axes(
                axis, "language", "score, points", task, legend_outside=True
            )
        return figure
