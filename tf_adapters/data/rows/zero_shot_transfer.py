"""Zero-shot transfer: training in one language, evaluation in many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import DataError
from tf_adapters.data.rows import sampling
from tf_adapters.data.rows import split_checks
from tf_adapters.data.rows.sources import find_source
from tf_adapters.tasks.languages import AVERAGES
from tf_adapters.tasks.languages import averages
from tf_adapters.tasks.languages import in_language

if TYPE_CHECKING:
    import os

    from tf_adapters.data.rows.sources import Source
    from tf_adapters.tasks.task import Task


_SPLITS = ("test", "validation")


def load_languages(task: Task, data: Any) -> dict[Any, Any]:
    """Loads the evaluation rows of each language in `data.eval_languages`.

    These are rows of the test split (He et al. 2021, section 4). If a language
    has no labels there, they are rows of the validation split.

    Args:
        task: `Task` with languages.
        data: `DataConfig`.

    Returns:
        Dict from language to a pair of the split's name and its rows. Empty if
        `data.eval_languages` is empty.

    Raises:
        UserError: If the task has a single language, or the data of a language
            is missing or has no labels.
    """
    found = {}
    for language in _languages(task, data):
        split, rows = _load(in_language(task, language), data.data_dir)
        found[language] = split, sampling.at_most(rows, data.max_test_examples)
    return found


def _load(
    task: Task, data_dir: str | os.PathLike[str] | None
) -> tuple[str, Sequence[Any] | list[Any]]:
    """Returns the name and the labeled rows of the first split with labels.

    The test split is tried first, then the validation split.
    """
    # If there is no split, the error is about the test split.
    test = find_source(task, "test", data_dir)
    for source in _sources(task, data_dir) or [test]:
        rows = split_checks.labeled_rows(source.rows(), source.split, task)
        if rows:
            return source.split, rows
    raise DataError(
        f"The data of task `{task.name}` in language `{task.language}` have no "
        "labels, neither for test nor for validation. Leave it out of "
        "--eval_languages."
    )


def _languages(task: Task, data: Any) -> Any:
    if not data.eval_languages:
        return ()
    # Raises an error if the task has no languages.
    in_language(task, "")
    if data.eval_languages != ("all",):
        return data.eval_languages
    return [
        language
        for language in task.languages.names
        if _sources(in_language(task, language), data.data_dir)
    ]


def _sources(
    task: Task, data_dir: str | os.PathLike[str] | None
) -> list[Source]:
    """Returns the `Source`s of the splits that can have labels.

    The test split comes first, followed by the validation split.
    """
    found = [find_source(task, split, data_dir) for split in _SPLITS]
    return [source for source in found if source.may_have_labels]


def summarize(task: Task, metrics: dict[str, Any]) -> dict[str, Any]:
    """Summarizes the metrics of all languages for a run's result.

    Args:
        task: `Task` with languages.
        metrics: Dict from language to a pair of the split's name and a dict
            of metrics.

    Returns:
        Dict with `metric`, the name of the task's first metric; the metric's
        average over each group of languages; and `languages`, a dict from
        language to its split and metrics.
    """
    name = task.metrics[0]
    values = {language: m[name] for language, (_, m) in metrics.items()}
    return {
        "metric": name,
        **averages(values, task.languages),
        "languages": {
            language: {"split": split, **m}
            for language, (split, m) in metrics.items()
        },
    }


def transfer_table(task: Task, summary: Any) -> str:
    """Formats the metrics of all languages and their averages as a text table.

    `summary` is the dict from `summarize`. Each language has a line.
    """
    name, languages = summary["metric"], summary["languages"]
    lines = [
        f"{language:<10} {values['split']:<10} {name} {values[name]:.4f}"
        for language, values in languages.items()
    ]
    total = len(task.languages.names)
    lines += [
        f"{group:<10} {'average':<10} {name} {summary[group]:.4f}"
        for group in AVERAGES
        if group in summary
    ]
    lines.append(
        f"Averages are over {len(languages)} languages; the paper's are over "
        f"{total}."
    )
    return "\n".join(lines)
