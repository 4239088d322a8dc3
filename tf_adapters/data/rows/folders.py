"""Finds a task's folder and files under `data_dir`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut

if TYPE_CHECKING:
    from tf_adapters.tasks.task import Task


_SUFFIXES = (".jsonl", ".csv", ".tsv", ".conllu", ".conll")


def local_names(task: Task, split: str) -> list[str]:
    """Returns the possible names of a split's local file."""
    names = [s + end for s in _stems(task, split) for end in _SUFFIXES]
    if split in task.file_stems:
        names.append(f"{task.file_stems[split]}.json")
    return names


def glue_names(task: Task, split: str) -> list[str]:
    """Returns the possible names of a split's file in GLUE's download."""
    return [f"{stem}.tsv" for stem in _stems(task, split)]


def _stems(task: Task, split: str) -> dict[str, Any]:
    """Returns a split's possible file names without suffix, as keys of a dict.

    A file has the name of the split, or the split's name in TensorFlow
    Datasets. Both names can have `dev` in place of `validation`.
    """
    stems = [split]
    named = task.all_splits.get(split, split)
    if named.isidentifier():
        stems.append(named)
    return dict.fromkeys(
        stem.replace("validation", word)
        for stem in stems
        for word in ("dev", "validation")
    )


def glue_folder(task: Task, data_dir: Any) -> Path | None:
    """Returns a task's folder in GLUE's download; `None` if it is missing."""
    folder = Path(data_dir) / task.glue.folder if task.glue else None
    return folder if folder and folder.is_dir() else None


def local_folder(task: Task, data_dir: Any) -> Path | None:
    """Returns the folder with a task's local files, or `None`.

    For a task in a language, the folder's name can have a suffix after `_`,
    because treebanks have names (`en_ewt`).

    Raises:
        DataError: If several folders have such a suffix.
    """
    folder = Path(data_dir) / (task.folder or task.name)
    if folder.is_dir():
        return None if _holds_prepared(task, folder) else folder
    if not task.language:
        return None
    named = folder.parent.glob(f"{folder.name}_*")
    found = sorted(path for path in named if path.is_dir())
    if len(found) > 1:
        raise DataError(
            f"Several folders hold `{task.name}` in `{task.language}`: "
            f"{cut(', '.join(path.name for path in found))}. Give one of these "
            f"names as a language, or a folder `{folder.name}`."
        )
    return found[0] if found else None


def _holds_prepared(task: Task, folder: Path) -> bool:
    """Returns whether a folder has only data from TensorFlow Datasets.

    Such a folder can have the task's name, but contains only folders.
    """
    source = task.source.split("/")[0]
    return source == folder.name and not any(
        path.is_file() for path in folder.iterdir()
    )


def layout(task: Task, folder: Any) -> str:
    """Describes the possible paths of a task's files, for error messages."""
    name = task.folder or task.name
    text = f"{folder}/{name}/{{train,dev,test}}.jsonl (or .csv, .tsv)"
    if task.glue:
        text += f", or GLUE's own {folder}/{task.glue.folder}/train.tsv"
    if task.source:
        text += f", or {folder}/{task.source} as TensorFlow Datasets makes it"
    return text
