"""Writes the report on a finished run.

The report uses the files that the run stored, and does not load the model.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import own_files
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.common.text_files import replace_text
from tf_adapters.report import answers
from tf_adapters.report import choices
from tf_adapters.report import classes
from tf_adapters.report import curves
from tf_adapters.report import html_page
from tf_adapters.report import mistakes
from tf_adapters.report import numbers
from tf_adapters.report import ranks
from tf_adapters.report import run_files
from tf_adapters.report import several_classes
from tf_adapters.report import tags
from tf_adapters.report.content import ReportContent
from tf_adapters.report.content import ReportTable
from tf_adapters.report.content import as_text
from tf_adapters.report.content import cell_text
from tf_adapters.runs import remote_folder
from tf_adapters.runs.left_files import REPORT
from tf_adapters.tasks.output_kinds import KINDS

if TYPE_CHECKING:
    from tf_adapters.report.run_files import RunFiles


# Maps the kind of label that a row has (see `OutputKind`) to the function that
# makes the report.
_FINDERS = {
    "class": classes.classes_content,
    "classes": several_classes.several_classes_content,
    "number": numbers.numbers_content,
    "choice": choices.choices_content,
    "class_a_word": tags.tags_content,
    "answers": answers.answers_content,
    "none": ranks.ranks_content,
}
_WITHOUT_PROBABILITIES = ("number", "none")
_MOST_MISTAKES = 20
_MOST_LINES = 30
_NOTHING_STORED = (
    "This run stored no predictions (masked language modeling and merges "
    "store none), so this page has only its result and its training."
)
_NO_PROBABILITIES = (
    "These predictions were stored without probabilities, by an earlier "
    "version: mistakes are in the order of the data, and there is no "
    "calibration. An evaluation of the run stores them."
)
_NOT_CHECKED = (
    "The texts of mistakes were not checked: the run, of an earlier version, "
    "has no fingerprint of this split's data. If the data has changed, they "
    "are not the texts that it predicted."
)


def write_report(
    model_dir: str | Path,
    split: str | None = None,
    data_dir: str | Path | None = None,
) -> dict[str, Path]:
    """Writes the folder `report/` in a run folder: HTML, CSV and pictures.

    Args:
        model_dir: Path of a finished run's folder.
        split: Name of a split, or `transfer/<language>`. Default: `test`, or
            `validation` if the run has no predictions for `test`.
        data_dir: Folder with the task's data, if it has moved. The texts of
            wrong predictions are read from it. Default: the folder in the
            run's configuration.

    Returns:
        Dict from `"report"`, `"errors"` and the names of the pictures to the
        paths of the files. If there are no predictions, `"errors"` is left
        out. Without Matplotlib there are no pictures, and a line is printed.

    Raises:
        ConfigError: If there is no finished run, there are no predictions for
            the split, or the folder cannot be written to.
    """
    run = run_files.with_rows(run_files.read_run(model_dir, split), data_dir)
    found = _find(run)
    folder = run.folder / REPORT
    try:
        own_files.make_folder(run.folder, REPORT)
        paths = _write(run, found, folder)
    except OSError as error:
        raise ConfigError(
            f"Cannot write the report to {cut(folder)}: {error.strerror}."
        ) from error
    remote_folder.copy_to_address(run.folder)
    return paths


def describe(model_dir: str | Path, split: str | None = None) -> str:
    """Returns the main tables of a report as plain text.

    The tables have the scores, the calibration and, depending on the task, the
    confusion matrix and the scores of each class.

    Args:
        model_dir: Path of a finished run's folder.
        split: See `write_report`.

    Raises:
        ConfigError: See `write_report`.
    """
    run = run_files.read_run(model_dir, split)
    found = _find(run)
    parts = [_title(run)]
    parts += [_on_screen(table) for table in found.tables if table.on_screen]
    return "\n\n".join([*parts, *found.notes])


def _on_screen(table: ReportTable) -> str:
    rest = len(table.rows) - _MOST_LINES
    if rest <= 0:
        return as_text(table)
    first = dataclasses.replace(table, rows=table.rows[:_MOST_LINES])
    return f"{as_text(first)}\n({rest:,} more in the report)"


def _find(run: RunFiles) -> Any:
    """Returns the `ReportContent` about a run's predictions and training."""
    if run.stored is None:
        return ReportContent(
            [_results(run)], curves.curve_pictures(run), None, [_NOTHING_STORED]
        )
    find = _FINDERS.get(KINDS[run.stored.head].label)
    found = ReportContent([_results(run)]) if find is None else find(run)
    notes = list(found.notes)
    is_old = run.has_own_head and "probabilities" not in run.stored.compared
    label = KINDS[run.stored.head].label
    if is_old and label not in _WITHOUT_PROBABILITIES:
        notes.append(_NO_PROBABILITIES)
    pictures = [*found.pictures, *curves.curve_pictures(run)]
    return dataclasses.replace(found, pictures=pictures, notes=notes)


def _results(run: RunFiles) -> ReportTable:
    """Returns a table of a run's validation and test metrics."""
    parts = {k: v for k, v in run.result.items() if k in ("validation", "test")}
    rows = [
        [split, name, float(value)]
        for split, values in parts.items()
        for name, value in values.items()
    ]
    return ReportTable("Scores", ("split", "metric", "value"), rows)


def _title(run: RunFiles) -> Any:
    if run.stored is None:
        return run.result["task"]
    return f"{run.result['task']}: {len(run.stored):,} rows of {run.split}"


def _title_of_page(run: RunFiles) -> str:
    """Returns the page's title.

    The title includes the run folder's name, unless it is the task's name too.
    """
    folder = run.folder.resolve().name
    title = _title(run)
    return title if folder == run.result["task"] else f"{title} ({folder})"


def _write(run: RunFiles, found: Any, folder: Path) -> dict[Any, Any]:
    for old in folder.glob("*.png"):
        old.unlink()
    paths = {"report": folder / "report.html"}
    pictures, notes = _draw(found.pictures, folder)
    tables, errors = list(found.tables), found.errors
    if errors is not None:
        paths[mistakes.NAME] = folder / f"{mistakes.NAME}.csv"
        mistakes.write_mistakes(errors, paths[mistakes.NAME])
        tables.append(_surest(errors))
    if run.lacks_rows:
        notes.append(f"The texts of mistakes were not found: {run.lacks_rows}")
    if run.rows is not None and run.fingerprint is None:
        notes.append(_NOT_CHECKED)
    text = html_page.report_page(
        _title_of_page(run),
        [*found.notes, *notes],
        tables,
        pictures,
        _facts(run),
    )
    replace_text(paths["report"], text)
    return paths | {picture.name: path for picture, path in pictures}


def _draw(pictures: Any, folder: Path) -> tuple[Any, ...]:
    """Draws pictures and saves them as PNG files.

    Returns:
        List of pairs of a `Picture` and the path of its file, and a list of
        notes. If Matplotlib is not installed, the first list is empty, and a
        note says why.
    """
    drawn = []
    for picture in pictures:
        try:
            figure = picture.draw()
        except ConfigError as error:
            print(error, flush=True)
            return [], [str(error)]
        path = folder / f"{picture.name}.png"
        with own_files.create(path) as file:
            figure.savefig(file, format="png", dpi=150)
        drawn.append((picture, path))
    return drawn, []


def _surest(errors: Any) -> Any:
    """Returns a table of the worst mistakes, which `errors` lists first."""
    count = len(errors.rows)
    note = f"{min(count, _MOST_MISTAKES)} of {count:,}, all in errors.csv. "
    return dataclasses.replace(
        errors,
        title="The worst mistakes",
        rows=errors.rows[:_MOST_MISTAKES],
        note=(note if count else "There are none. ") + errors.note,
    )


_FACTS = ("encoder", "method", "seed", "trained_weights", "best_step")
_FACTS += ("examples", "seconds", "commit", "device")


def _facts(run: RunFiles) -> ReportTable:
    facts = {key: run.result[key] for key in _FACTS if key in run.result}
    rows = [
        [key.replace("_", " "), _fact(value)] for key, value in facts.items()
    ]
    versions = run.result.get("versions", {})
    rows += [[name, version] for name, version in versions.items()]
    return ReportTable("The run", ("", "value"), rows)


def _fact(value: Any) -> str:
    # One decimal is enough for seconds.
    return f"{value:,.1f}" if isinstance(value, float) else cell_text(value)
