"""Loads the rows of a task, or of a file to predict; see `sources`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut
from tf_adapters.data.rows import sampling
from tf_adapters.data.rows.files import open_stream
from tf_adapters.data.rows.files import read_file
from tf_adapters.data.rows.sources import find_source
from tf_adapters.data.rows.typed_rows import typed_rows

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from tf_adapters.tasks.task import Task


def load_split(
    task: Task, split: str, data_dir: str | os.PathLike[str] | None = None
) -> list[dict[Any, Any]]:
    """Loads one split of a task.

    Args:
        task: A `Task`.
        split: Name of the split; see `find_source`.
        data_dir: Folder with the data, or `None` (default); see `sources`.

    Returns:
        List of dicts with `task.text_fields` and `"label"`, which is `None`
        for test rows without labels; see `typed_rows`.

    Raises:
        DataError: If the split is missing or has malformed rows.
    """
    task = resolve_labels(task, data_dir)
    return find_source(task, split, data_dir).rows()


def load_train_and_validation(
    task: Task, data_dir: str | os.PathLike[str] | None = None, seed: int = 0
) -> tuple[Any, ...]:
    """Loads the training and validation splits.

    If the data has no validation split, a tenth of the training rows is held
    out for it. If the task has classes and files of its own, a tenth of each
    class is held out.

    Args:
        task: A `Task`.
        data_dir: See `load_split`.
        seed: Integer. Chooses the held-out rows. Defaults to 0.

    Returns:
        Two lists of rows, for training and validation.

    Raises:
        DataError: See `load_split`.
    """
    task = resolve_labels(task, data_dir)
    train = find_source(task, "train", data_dir).rows()
    validation = find_source(task, "validation", data_dir)
    if validation.is_there:
        return train, validation.rows()
    if task.files and task.kind.label == "class":
        return sampling.hold_out_of_each_class(train, seed)
    return sampling.hold_out(train, seed)


def load_file(
    task: Task, path: Path, with_labels: bool = False
) -> list[dict[Any, Any]]:
    """Loads a file of rows to predict.

    Args:
        task: A `Task`. Its classes must be known if labels are read.
        path: `.jsonl`, `.csv` or `.tsv`; with a single text field also `.txt`,
            a text on each line; for words `.conllu` or `.conll`; for spans
            SQuAD's `.json`.
        with_labels: Whether to read labels, if there are any. Defaults to
            `False`.

    Returns:
        List of rows, as in `load_split`.

    Raises:
        DataError: If the file is missing or rows are malformed.
    """
    fields = task.text_fields
    table = read_file(path, fields[0] if len(fields) == 1 else None)
    return typed_rows(table, task, "optional" if with_labels else "ignored")


def load_stream(task: Task, file: Any, origin: str) -> list[dict[Any, Any]]:
    """Loads rows to predict from an open file.

    Lines are JSON objects. If the task has a single text field, and the first
    line is not an object with this field, each line is a text.

    Args:
        task: A `Task`.
        file: Binary file.
        origin: Name of the file in error messages.

    Returns:
        List of rows, as in `load_split`.

    Raises:
        DataError: If rows are malformed, or there are none.
    """
    field, *others = task.text_fields
    table = open_stream(
        file, origin, None if others else field, task.aliases.get(field, "")
    )
    return typed_rows(table, task, "ignored")


def resolve_labels(
    task: Task, data_dir: str | os.PathLike[str] | None = None
) -> Task:
    """Adds the class names to a task that does not state them.

    They are the sorted names that occur in the training split. Other tasks are
    returned unchanged.

    Raises:
        DataError: If the training split cannot be read or has fewer than two
            classes.
    """
    if task.kind.label != "class" or task.labels:
        return task
    table = find_source(task, "train", data_dir).read()
    names = (fields.get(task.label_field) for _, fields in table.rows)
    found = sorted({str(name) for name in names if name not in (None, "")})
    table.raise_problems()
    if len(found) < 2:
        raise DataError(
            f"The classes of task `{task.name}` are the values of field "
            f"`{task.label_field}` of {table.origin}, which must have at least "
            f"two. Received: {cut(found)}"
        )
    return dataclasses.replace(task, labels=tuple(found))
