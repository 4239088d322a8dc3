"""Writes the files that GLUE's server scores, one for each test set.

File names, class names and numbers of rows follow the sample submission on
gluebenchmark.com (Wang et al. 2019, arXiv:1804.07461). The server refuses a
submission with other names or another number of rows.
"""

import dataclasses
import math
import os
from pathlib import Path
import tempfile
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.text_files import replace_text
from tf_adapters.data.rows import load
from tf_adapters.data.rows.sources import find_source
from tf_adapters.tasks import glue as glue_tasks

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.tasks.task import Task


class SubmissionError(UserError):
    """Raised for predictions that GLUE's server would refuse."""


@dataclasses.dataclass(frozen=True)
class SubmissionFile:
    """The file that the server expects for one test set.

    Attributes:
        name: File name.
        num_rows: Number of rows in the test set.
        words: Dict from class name to the word in the file, or `None` for a
            task whose predictions are numbers.
    """

    name: str
    num_rows: int
    words: dict[str, str] | None


def _ids(task: "Task") -> dict[str, str]:
    return {label: str(i) for i, label in enumerate(task.labels)}


def _names(task: "Task") -> dict[str, str]:
    return {label: label for label in task.labels}


_TASKS = {task.name: task for task in glue_tasks.GLUE}
_MNLI_LAYOUT: Any = glue_tasks.MNLI.glue
# Predicted by a model of MNLI. The diagnostic set has only a test split.
DIAGNOSTIC = dataclasses.replace(
    glue_tasks.MNLI,
    name="ax",
    source="glue/ax",
    unlabeled_splits={"test": "test"},
    glue=dataclasses.replace(_MNLI_LAYOUT, folder="diagnostic"),
)
_MNLI_WORDS = _names(glue_tasks.MNLI)

# Maps a task and a split to the file that the server expects.
FILES = {
    ("cola", "test"): SubmissionFile("CoLA.tsv", 1063, _ids(_TASKS["cola"])),
    ("sst2", "test"): SubmissionFile("SST-2.tsv", 1821, _ids(_TASKS["sst2"])),
    ("mrpc", "test"): SubmissionFile("MRPC.tsv", 1725, _ids(_TASKS["mrpc"])),
    ("stsb", "test"): SubmissionFile("STS-B.tsv", 1379, None),
    ("qqp", "test"): SubmissionFile("QQP.tsv", 390965, _ids(_TASKS["qqp"])),
    ("mnli", "test"): SubmissionFile("MNLI-m.tsv", 9796, _MNLI_WORDS),
    ("mnli", "test_mismatched"): SubmissionFile(
        "MNLI-mm.tsv", 9847, _MNLI_WORDS
    ),
    ("ax", "test"): SubmissionFile("AX.tsv", 1104, _MNLI_WORDS),
    ("qnli", "test"): SubmissionFile("QNLI.tsv", 5463, _names(_TASKS["qnli"])),
    ("rte", "test"): SubmissionFile("RTE.tsv", 3000, _names(_TASKS["rte"])),
    ("wnli", "test"): SubmissionFile("WNLI.tsv", 146, _ids(_TASKS["wnli"])),
}


def export_submission(
    config: "Config",
    model_dir: str | os.PathLike[str],
    folder: str | os.PathLike[str],
) -> list[Path]:
    """Predicts the test sets of a run's task and writes a file for each.

    Args:
        config: `Config` of the run. Its task must be one of GLUE's.
        model_dir: Path of the run folder.
        folder: Path of the folder to write to. Files of other tasks in it are
            kept.

    Returns:
        List of the paths of the files, one for each available test set.

    Raises:
        SubmissionError: If the task is not one of GLUE's, a test set has
            another number of rows than the official one, or `folder` is a file.
        OSError: If nothing can be written to `folder`.
    """
    from tf_adapters.runs import experiment

    if config.task not in _TASKS:
        raise SubmissionError(
            "GLUE's server takes predictions for its own tasks, "
            f"{', '.join(_TASKS)}. Received: task={cut(config.task)}"
        )
    test_sets = {
        key: load_glue_rows(*key, config.data.data_dir)
        for key in _test_sets(config.task, config.data.data_dir)
    }
    # Check first, because prediction may take hours.
    for key, rows in test_sets.items():
        _check_rows(FILES[key], len(rows))
    _check_folder(Path(folder))
    run = experiment.Experiment(
        config, _TASKS[config.task], Path(model_dir) / "adapter"
    )
    return [
        write_submission(FILES[key], run.predict(rows), folder)
        for key, rows in test_sets.items()
    ]


def _check_folder(folder: Path) -> None:
    """Makes a folder, and raises an error if no file can be written to it."""
    if folder.exists() and not folder.is_dir():
        raise SubmissionError(
            f"--glue_submission={cut(folder)} is a file. Expected a folder, to "
            "which a file for each test set is written."
        )
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def write_submission(
    file: SubmissionFile,
    predictions: list[dict[str, Any]],
    folder: str | os.PathLike[str],
) -> Path:
    """Writes the file with the predictions for one test set of GLUE.

    Args:
        file: `SubmissionFile`, an entry of `FILES`.
        predictions: List of dicts with `label` (class name) or `score`, in the
            order of the test set. Scores are clipped to the range 0 to 5.
        folder: Path of the folder. Created if it does not exist.

    Returns:
        Path of the file.

    Raises:
        SubmissionError: If the number of rows is wrong, a class is unknown, or
            a score is not finite.
    """
    _check_rows(file, len(predictions))
    lines = [
        f"{index}\t{_word(file, index, prediction)}\n"
        for index, prediction in enumerate(predictions)
    ]
    path = Path(folder) / file.name
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, "index\tprediction\n" + "".join(lines))
    return path


def load_glue_rows(
    task_name: str, split: str, data_dir: str | os.PathLike[str] | None = None
) -> list[dict[str, Any]]:
    """Returns the rows of one of GLUE's test sets in the official order.

    Args:
        task_name: Name of the task. With `split`, a key of `FILES`.
        split: `"test"` or `"test_mismatched"`.
        data_dir: See `tf_adapters.data.rows.load`. Local files must be in the
            official order, like the files that GLUE provides.
    """
    if task_name == "ax":
        local = _diagnostic_file(data_dir)
        if local is not None:
            return load.load_file(DIAGNOSTIC, local)
    task = DIAGNOSTIC if task_name == "ax" else _TASKS[task_name]
    return load.load_split(task, split, data_dir)


def _test_sets(
    task_name: str, data_dir: str | os.PathLike[str] | None
) -> list[tuple[str, str]]:
    """Returns the test sets to predict for a task, as keys of `FILES`.

    MNLI has two more test sets, which are included if their data are available.
    """
    keys = [(task_name, "test")]
    if task_name == "mnli":
        mismatched = find_source(_TASKS["mnli"], "test_mismatched", data_dir)
        if mismatched.is_there:
            keys.append(("mnli", "test_mismatched"))
        diagnostic = find_source(DIAGNOSTIC, "test", data_dir)
        if _diagnostic_file(data_dir) or diagnostic.is_there:
            keys.append(("ax", "test"))
    return keys


def _diagnostic_file(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """Returns the path of GLUE's diagnostic set in `data_dir`, or `None`."""
    names = ("diagnostic/diagnostic.tsv", "AX/AX.tsv", "AX.tsv")
    files = [Path(data_dir) / name for name in names] if data_dir else []
    return next((file for file in files if file.is_file()), None)


def _check_rows(file: SubmissionFile, num_rows: int) -> None:
    if num_rows != file.num_rows:
        raise SubmissionError(
            f"{file.name} needs a prediction for each of the {file.num_rows:,} "
            f"rows of GLUE's test set. Received: {num_rows:,}. Use the whole "
            "official test set, in its order."
        )


def _word(file: SubmissionFile, index: int, prediction: dict[str, Any]) -> str:
    """Returns the text that stands for a prediction in a submission file.

    `index` is the number of the row, for error messages.
    """
    if file.words is None:
        score = prediction.get("score", math.nan)
        if not math.isfinite(score):
            raise SubmissionError(
                f"{file.name}, row {index}: expected a finite `score`. "
                f"Received: {cut(prediction)}"
            )
        return f"{min(max(score, 0.0), 5.0):.6f}"
    label = prediction.get("label")
    if label not in file.words:
        raise SubmissionError(
            f"{file.name}, row {index}: expected a `label` out of "
            f"{', '.join(file.words)}. Received: {cut(prediction)}"
        )
    return file.words[label]
