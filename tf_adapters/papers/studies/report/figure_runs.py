"""Finds the finished runs for a study's pictures, and makes their labels."""

from collections.abc import Sequence
import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.launch import finished_runs
from tf_adapters.runs import earlier_runs

if TYPE_CHECKING:
    import pandas as pd

    from tf_adapters.launch.planned_run import Run
    from tf_adapters.papers.analysis.support.analysis import Analysis


@dataclasses.dataclass(frozen=True)
class CurveSource:
    """A run, or one of its tasks, that a figure can show.

    Attributes:
        run: The run's folder, or `None` if it is not finished.
        folder: The task's folder if the run has a folder for each task, else
            `run`.
        point: Dict of the run's task and its settings in the study's grid.
        settings: Dict of all settings of the run.
    """

    run: Path | None
    folder: Path | None
    point: dict
    settings: dict


def find_sources(
    runs: "Sequence[Run]", folder: Path, chosen: Any = None
) -> list[Any]:
    """Returns a `CurveSource` for each task of each run.

    Args:
        runs: List of `Run`.
        folder: Folder of the study.
        chosen: Set of pairs of a run's id and a task. If set, only these tasks
            have a `CurveSource`.
    """
    return [
        _source(run, finished_runs.find_run(run, folder), task)
        for run in runs
        for task in run.metrics
        if chosen is None or (run.id, task) in chosen
    ]


def _source(run: Any, found: Any, task: str) -> "CurveSource":
    point = {"task": task, **run.point}
    if len(run.metrics) > 1:
        point["task"] = task
    own = found and earlier_runs.folder_of_task(found, task)
    return CurveSource(found, own, point, {**run.settings, "task": task})


def labels(sources: Any) -> list[str]:
    """Returns a label for each run: the settings in which the runs differ.

    Encoders in different folders may have the same name. Then labels have the
    complete values of the settings, so that no two runs have the same label.
    """
    keys = dict.fromkeys(key for source in sources for key in source.point)
    varied = [
        key
        for key in keys
        if len({str(source.point.get(key)) for source in sources}) > 1
    ]
    found = [
        [(key, source.point[key]) for key in varied if key in source.point]
        for source in sources
    ]
    short = [", ".join(named(*item) for item in some) for some in found]
    if len(set(short)) == len(short):
        return short
    return [", ".join(f"{k} {v}" for k, v in some) for some in found]


def named(key: Any, value: Any) -> Any:
    """Returns a label for a setting's value, such as "epochs 3"."""
    if key in ("task", "method", "encoder"):
        return Path(str(value)).name
    return f"{key.rpartition('.')[2]} {value}"


def with_points(
    table: "pd.DataFrame",
    one: "Analysis",
    sources: Sequence[CurveSource],
    folder: Path,
) -> Any:
    """Adds the settings of each row's run to a table as columns.

    The column `method` gets the name that the study uses, such as a preset.

    Args:
        table: `pandas.DataFrame` from an analysis.
        one: The `Analysis`.
        sources: List of `CurveSource` that the analysis read.
        folder: Folder of the study.
    """
    rows = _sources_of_rows(table, one, sources)
    if rows is None:
        return table
    keys = dict.fromkeys(key for source in sources for key in source.point)
    columns = {key: [row.point.get(key) for row in rows] for key in keys}
    paths = [os.path.relpath(row.folder, folder) for row in rows]
    return table.assign(**columns, run=paths)


def with_labels(table: Any, one: Any, sources: Any) -> Any:
    """Replaces run folders in a table's column `run` by readable labels.

    A label gives the settings in which the runs differ, such as "epochs 3".
    """
    rows = _sources_of_rows(table, one, sources)
    if rows is None or "run" not in table:
        return table
    names = dict(zip(map(id, sources), labels(sources), strict=True))
    names = [names[id(row)] or row.run.name for row in rows]
    return table.assign(run=names)


def _sources_of_rows(table: Any, one: Any, sources: Any) -> Any:
    """Returns the `CurveSource` of the run behind each row of a table.

    Returns `None` if the run of a row is not known.
    """
    if one.reads == "model_dir":
        return sources * len(table)
    if one.reads == "study_dir" or "run" not in table:
        return None
    known = {str(source.folder): source for source in sources}
    found = [known.get(run) for run in table.run]
    return None if None in found else found
