"""Reads a finished run's result, log, predictions and texts for a report."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import heads
from tf_adapters.common import adapter_folder
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.config import resolve
from tf_adapters.data.rows import sampling
from tf_adapters.data.rows import splits
from tf_adapters.data.rows import zero_shot_transfer
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import predictions
from tf_adapters.runs import run_files
from tf_adapters.runs import task_data

if TYPE_CHECKING:
    import os

    from tf_adapters.tasks.task import Task


# By default, the report is about the first of these that has predictions.
_PREFERRED = ("test", "validation")


@dataclasses.dataclass(frozen=True)
class RunFiles:
    """The stored files of a finished run, and the rows of one split.

    Attributes:
        folder: Path of the run folder.
        result: Dict with the content of `result.json`.
        records: List of dicts, the lines of `metrics.jsonl`.
        head: Dict with the settings of the trained head. Empty if the run has
            no adapter.
        split: Name of the split, or `None` if no predictions are stored.
        stored: `Predictions` for the split, or `None`.
        fields: Names of a row's text fields, or `()` if `rows` is `None`.
        rows: Rows of the split, or `None` if they were not found.
        lacks_rows: Message that says why rows were not found, or "".
    """

    folder: Path
    result: dict[str, Any]
    records: list[Any]
    head: dict[str, Any]
    split: str | None = None
    # `None` if the run has no predictions.
    stored: predictions.Predictions | Any = None
    fields: tuple[str, ...] = ()
    rows: list[Any] | None = None
    lacks_rows: str = ""

    @property
    def metrics(self) -> Any:
        """Dict of the split's metrics in `result`.

        If `result` has no metrics of the split, these are the validation
        metrics.
        """
        part = self.result
        if self.split and self.split.startswith("transfer/"):
            part = self.result.get("transfer", {}).get("languages", {})
        name = (self.split or "").removeprefix("transfer/")
        return part.get(name) or self.result.get("validation", {})

    @property
    def fingerprint(self) -> str | None:
        """Stored fingerprint of the split's rows, or `None` if none is."""
        key, name = "data_fingerprint", self.split or ""
        if name.startswith("transfer/"):
            key, name = "transfer_fingerprint", name.removeprefix("transfer/")
        return self.result.get(key, {}).get(name)

    @property
    def has_own_head(self) -> bool:
        """Whether the head is one of this library's, not of a plug-in."""
        cls = heads.HEADS[self.stored.head]
        return cls.__module__.startswith("tf_adapters.")

    def label_names(self, count: int) -> list[str]:
        """Returns a list of the run's class names in the order of their ids.

        If no file of the run has class names, the names are numbers from 0.

        Args:
            count: Number of classes, used if there are no names.
        """
        stored = self.stored.labels if self.stored else None
        names = stored or self.head.get("labels") or ()
        return [str(n) for n in names] or [str(i) for i in range(count)]


def read_run(folder: Any, split: str | None = None) -> "RunFiles":
    """Reads a finished run's files; returns `RunFiles` without the data's rows.

    Args:
        folder: Path of the run folder.
        split: Name of a split, or `transfer/<language>`. Default: `test`, or
            `validation` if the run has no predictions for `test`.

    Raises:
        ConfigError: If there is no finished run of a single task, or it has no
            predictions for the split.
    """
    folder = Path(folder)
    result = _result(folder)
    there = predictions.stored_splits(folder)
    if split is not None:
        if not there:
            raise ConfigError(f"{folder} has no stored predictions.")
        check_known("split with predictions", split, there)
    elif there:
        split = next((name for name in _PREFERRED if name in there), there[0])
    stored = predictions.load_predictions(folder, split) if split else None
    records = _records(folder, result)
    return RunFiles(folder, result, records, _head(folder), split, stored)


def _result(folder: Path) -> Any:
    if not (folder / "config.yaml").exists():
        raise ConfigError(
            f"{cut(folder)} is not a run folder: it has no config.yaml. Give "
            "the --model_dir that a run was trained with."
        )
    result = earlier_runs.read_result(folder)
    if result is None:
        raise ConfigError(
            f"{cut(folder)} holds a run that has not finished: it has no "
            "result.json. Resume it with the command that started it."
        )
    if "tasks" in result:
        names = list(result["tasks"])
        raise ConfigError(
            f"{cut(folder)} is a run of the tasks {cut(', '.join(names))}. "
            f"Give the folder of one of them: {folder / names[0]}"
        )
    return result


def _head(folder: Path) -> dict[Any, Any]:
    """Returns a dict of the head's settings. Empty if there is no adapter."""
    if not (folder / "adapter").is_dir():
        return {}
    config = adapter_folder.read_adapter_config(folder / "adapter")
    return config["head"] or {}


def _records(folder: Path, result: dict[str, Any]) -> list[Any]:
    """Returns the records in the run's log as a list of dicts.

    Tasks that were trained together share a log, in which the metrics are named
    `<task>/<metric>`. For such a run, returns only the task's own metrics.
    """
    together = "trained_with" in result
    path = (folder.parent if together else folder) / "metrics.jsonl"
    if not path.exists():
        return []
    try:
        records = run_files.read_records(path)
    except UserError as error:
        raise DataError(
            f"{error} Remove it: the report has no curves of training then."
        ) from error
    return [_own(r, result["task"]) for r in records] if together else records


def _own(record: dict[str, Any], task: "Task") -> dict[str, Any]:
    values = record.get("validation", {})
    own = {
        name.removeprefix(f"{task}/"): value
        for name, value in values.items()
        if name.startswith(f"{task}/")
    }
    return {**record, "validation": own} if values else record


def with_rows(
    run: RunFiles, data_dir: "str | os.PathLike[str] | None" = None
) -> "RunFiles":
    """Returns a copy of `run` with the rows of its split, if they can be found.

    The rows are read again from the data, with the run's settings. If they are
    missing or differ from the run's rows, `rows` stays `None`, and `lacks_rows`
    says why.

    Args:
        run: `RunFiles`.
        data_dir: Folder with the task's data, if it has moved. Default: the
            folder in the run's configuration.
    """
    if run.stored is None:
        return run
    try:
        fields, rows = _read_rows(run, data_dir)
    except UserError as error:
        return dataclasses.replace(run, lacks_rows=str(error))
    if run.fingerprint not in (None, sampling.fingerprint(rows)):
        why = "the data there differs from the run's"
    elif len(rows) != len(run.stored):
        why = (
            f"the data there have {len(rows):,} rows, but the run predicted "
            f"{len(run.stored):,}"
        )
    else:
        return dataclasses.replace(run, fields=fields, rows=rows)
    return dataclasses.replace(run, lacks_rows=f"{why}.")


def _read_rows(
    run: "RunFiles", data_dir: "str | os.PathLike[str] | None"
) -> tuple[tuple[str, ...], Any]:
    """Reads the data of a run's split.

    Returns the names of the text fields, and the rows.
    """
    layer = resolve.load_for_one_machine(run.folder / "config.yaml")
    config = resolve.resolve_config(layer)
    if data_dir is not None:
        data = dataclasses.replace(config.data, data_dir=str(data_dir))
        config = dataclasses.replace(config, data=data)
    task = task_data.get_task(config)
    split = run.split or ""
    if split.startswith("transfer/"):
        languages = zero_shot_transfer.load_languages(task, config.data)
        found = languages.get(split.removeprefix("transfer/"), ("", []))
        return task.text_fields, found[1]
    found = splits.read_rows(task, config.data, config.seed)
    return task.text_fields, found.get(split, [])
