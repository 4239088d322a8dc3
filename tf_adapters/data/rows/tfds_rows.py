"""Reads rows from TensorFlow Datasets.

Prepared files are read if there are any. Otherwise the data is downloaded. If
there is no network, an error says what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.common import network
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut
from tf_adapters.data.rows import folders
from tf_adapters.data.rows.table import Table

if TYPE_CHECKING:
    from tf_adapters.tasks.task import Task


# If one of these answers, there is a network. The first has most of GLUE and
# SuperGLUE, the second the files that TensorFlow Datasets hosts itself.
_HOSTS = ("https://dl.fbaipublicfiles.com", "https://storage.googleapis.com")
_LOGGER = logging.getLogger(__name__)


def default_directory() -> str:
    """Returns the folder in which TensorFlow Datasets stores its data."""
    return os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"


def find_prepared(task: Task, directory: Any) -> Path | None:
    """Returns the newest prepared version of a task's data, or `None`.

    Args:
        task: A `Task`.
        directory: Folder of TensorFlow Datasets.
    """
    if not task.source:
        return None
    root = Path(directory).expanduser() / task.source
    found = [info.parent for info in root.glob("*/dataset_info.json")]
    return max(found, key=_version, default=None)


def _version(path: Path) -> list[int]:
    return [
        int(part) if part.isdecimal() else -1 for part in path.name.split(".")
    ]


def read_prepared(task: Task, split: str, path: Path) -> Table:
    """Reads a split of a prepared data set, without a network.

    Args:
        task: A `Task`.
        split: Split in the syntax of TensorFlow Datasets, possibly a slice.
        path: Path from `find_prepared`.

    Returns:
        A `Table` with row numbers, and class names as labels.
    """
    import tensorflow_datasets as tfds

    return _read(task, split, tfds.builder_from_directory(str(path)))


def check_network(task: Task) -> None:
    """Raises a `DataError` if no host of the data can be reached in time."""
    if not network.answers(*_HOSTS):
        raise DataError(_no_data(task, "and there is no network"))


def download(task: Task, split: str) -> Table:
    """Downloads and prepares a task's data, and reads a split.

    Args:
        task: A `Task` with a `source` in TensorFlow Datasets.
        split: Split in the syntax of TensorFlow Datasets, possibly a slice.

    Returns:
        See `read_prepared`.

    Raises:
        DataError: If the data cannot be prepared.
    """
    import tensorflow_datasets as tfds

    builder = tfds.builder(task.source)
    try:
        builder.download_and_prepare()
    # Any error means the same for the user: there is no data.
    except Exception as error:
        reason = (
            f"and preparing it failed ({type(error).__name__}: {cut(error)})"
        )
        raise DataError(_no_data(task, reason)) from error
    return _read(task, split, builder)


def _no_data(task: Task, reason: str) -> str:
    return (
        f"Task `{task.name}` needs `{task.source}` of TensorFlow Datasets, "
        f"which is not prepared in {default_directory()}, {reason}: either "
        "give local files with --data_dir=<folder>, as "
        f"{folders.layout(task, '<folder>')}; or prepare it on a machine with "
        'a network (python -c "import tensorflow_datasets as tfds; '
        f"tfds.load('{task.source}', data_dir='<folder>')\") and point "
        "--data_dir or TFDS_DATA_DIR at that folder."
    )


def _read(task: Task, split: str, builder: Any) -> Table:
    import tensorflow_datasets as tfds

    dataset = builder.as_dataset(split=split, shuffle_files=False)
    label_feature = builder.info.features[task.label_field]
    # The names of a sequence of labels are one level deeper.
    label_feature = getattr(label_feature, "feature", label_feature)
    names = getattr(label_feature, "names", None)
    fields = {*task.text_fields, *task.choice_fields, task.id_field}
    is_secret = split in task.unlabeled_splits.values()
    rows = []
    wordless = 0
    for number, example in enumerate(tfds.as_numpy(dataset), start=1):
        if task.kind.list_field == "words" and not len(
            example[task.list_field]
        ):
            # Some treebanks are released without their words.
            wordless += 1
            continue
        row: dict[str, Any] = {
            key: _plain(example[key], task.language)
            for key in fields & set(example)
        }
        row[task.label_field] = _label(example[task.label_field], names, task)
        rows.append((_place(example, is_secret, number), row))
    rows.sort(key=lambda numbered: numbered[0])
    if wordless:
        _LOGGER.warning(
            "%s, split %s: %d sentences without words are left out",
            task.source,
            split,
            wordless,
        )
    table = Table(f"{task.source}, split {split}", rows)
    table.raise_empty(rows)
    return table


def _place(example: dict[str, Any], is_secret: bool, number: int) -> int:
    """Returns the number by which a row is sorted.

    TensorFlow Datasets shuffles rows when it stores them, always in the same
    way, and stores their position in the official file as `idx`. If the labels
    are secret, rows are sorted by `idx`, because GLUE's server scores
    predictions by position. Other rows stay in the stored order.

    Args:
        example: Dict of a row's features.
        is_secret: Whether the split has no labels.
        number: Number of the row in the stored order.
    """
    place = np.asarray(example.get("idx", number))
    # `idx` is a dict in SuperGLUE's MultiRC, and a text in some other sets.
    is_number = np.issubdtype(place.dtype, np.integer)
    return int(place) if is_secret and is_number else number


def _plain(value: Any, language: str = "") -> str | list[Any]:
    """Decodes bytes to a string, or a list of bytes to a list of strings.

    If `value` is a dict of translations, the one in `language` is decoded.
    """
    if isinstance(value, dict) and "translation" in value:
        texts = value["translation"].tolist()
        value = dict(zip(_plain(value["language"]), texts, strict=True))
    if isinstance(value, dict):
        value = value[language]
    if isinstance(value, bytes):
        return value.decode()
    return [part.decode() for part in value]


def _label(value: Any, names: Sequence[str] | None, task: Task) -> Any:
    """Converts a label of TensorFlow Datasets to the form in local files.

    Class ids become class names, because the task can number its classes
    differently.
    """
    kind = task.kind.label
    if kind == "choice":
        # The index of a choice, even if the data set has names for indices.
        return int(value)
    if kind == "answers":
        starts = value["answer_start"].tolist()
        return {"text": _plain(value["text"]), "answer_start": starts}
    if kind == "number" and names is None:
        return float(value)
    names = names or task.labels
    if kind in ("class_a_word", "classes"):
        return [_class_name(label, names) for label in value]
    return _class_name(value, names)


def _class_name(value: Any, names: Sequence[str] | None) -> str | int | None:
    """Returns the class name of a label, or `None` if there is no label.

    In TensorFlow Datasets, a number is always an id, never a name, and a
    negative number means no label.
    """
    if isinstance(value, bytes):
        return value.decode()
    if value < 0:
        return None
    if not names:  # Not declared: the ids in training become the names.
        return int(value)
    if value >= len(names):
        raise DataError(
            f"TensorFlow Datasets has the class id {value}, expected one from "
            f"0 to {len(names) - 1}: {', '.join(names):.200}"
        )
    return names[int(value)]
