"""Finds where the rows of a split are, without reading them.

Sources, in order of precedence: the task's own files; built-in rows; under
`data_dir`, if given, local files, the official GLUE download, or a data set
prepared by TensorFlow Datasets; without `data_dir`, TensorFlow Datasets.
"""

from collections.abc import Callable
import dataclasses
from functools import partial
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.checks import unknown
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut
from tf_adapters.data.rows import folders
from tf_adapters.data.rows import generated
from tf_adapters.data.rows import tfds_rows
from tf_adapters.data.rows.files import open_file
from tf_adapters.data.rows.files import read_glue_file
from tf_adapters.data.rows.table import Table
from tf_adapters.data.rows.typed_rows import typed_rows
from tf_adapters.tasks.task import Task

if TYPE_CHECKING:
    import os


_BUILTIN = "builtin:"


@dataclasses.dataclass(frozen=True)
class Source:
    """Where the rows of a split are.

    Attributes:
        task: `Task` of the rows. For the training split, it is the original
            task's `train_task`, if there is one.
        split: Name of the split.
        reader: Function without arguments that returns a `Table`, or `None`
            (default) if the split is missing.
        problem: Error message if the split is missing, otherwise `""`.
        is_secret: Whether the labels are known to be secret.
        needs_network: Whether the rows must be downloaded before they are read.
    """

    task: Task
    split: str
    reader: Callable[[], Table] | None = None
    problem: str = ""
    is_secret: bool = False
    needs_network: bool = False

    @property
    def is_there(self) -> bool:
        """Whether the split exists."""
        return self.reader is not None

    @property
    def may_have_labels(self) -> bool:
        """Whether the split exists and is not known to lack labels."""
        return self.is_there and not self.is_secret

    def check(self) -> None:
        """Raises a `DataError` if the rows are missing. Does not read them."""
        if not self.is_there:
            raise DataError(self.problem)
        if self.needs_network:
            tfds_rows.check_network(self.task)

    def read(self) -> Any:
        """Returns the rows as a `Table`.

        Raises:
            DataError: If the split is missing.
        """
        self.check()
        reader: Any = self.reader
        return reader()

    def rows(self) -> list[dict[Any, Any]]:
        """Returns the rows with the task's fields and labels; see `typed_rows`.

        Labels are required, except in test splits. Secret labels are ignored.

        Raises:
            DataError: If the split is missing or has malformed rows.
        """
        labels = "optional" if self.split.startswith("test") else "required"
        if self.is_secret:
            labels = "ignored"
        return typed_rows(self.read(), self.task, labels)


def find_source(
    task: Task, split: str, data_dir: "str | os.PathLike[str] | None" = None
) -> "Source":
    """Returns the `Source` of a split, even if its data are missing.

    Args:
        task: A `Task`.
        split: `"train"`, `"validation"`, `"test"`, or another of the task's
            splits (`"validation_mismatched"` of MNLI).
        data_dir: Folder with the data, or `None` (default); see the module's
            docstring.

    Raises:
        DataError: If the task has no such split, or several folders may have
            it.
    """
    if split == "train" and task.train_task:
        task = task.train_task
    if task.files:
        return _own_file(task, split)
    if split not in ("test", *task.all_splits):
        raise DataError(_unknown_split(task, split, {"test", *task.all_splits}))
    if task.source.startswith(_BUILTIN):
        name = task.source.removeprefix(_BUILTIN)
        return Source(task, split, partial(generated.read_table, name, split))
    if data_dir is None:
        return _in_tfds(task, split)
    folder = folders.local_folder(task, data_dir)
    if folder:
        names = folders.local_names(task, split)
        return _in_folder(task, split, folder, names, open_file)
    folder = folders.glue_folder(task, data_dir)
    if folder:
        names = folders.glue_names(task, split)
        read = partial(read_glue_file, task=task)
        return _in_folder(task, split, folder, names, read)
    return _prepared(task, split, data_dir)


def _own_file(task: Task, split: str) -> "Source":
    if split in task.files:
        return Source(task, split, partial(open_file, task.files[split]))
    problem = _unknown_split(task, split, task.files)
    return Source(task, split, problem=problem)


def _in_folder(
    task: Task,
    split: str,
    folder: Any,
    names: Any,
    read: Any,
) -> "Source":
    for file in (folder / name for name in names):
        if file.is_file():
            return Source(task, split, partial(read, file))
    here = ", ".join(sorted(file.name for file in folder.iterdir()))
    problem = (
        f"Task `{task.name}` has no {split} split in {folder}. Looked for: "
        f"{', '.join(names)}. Found: {cut(here)}."
    )
    return Source(task, split, problem=problem)


def _prepared(
    task: Task, split: str, data_dir: "str | os.PathLike[str] | None"
) -> "Source":
    """Returns the `Source` of a split that is prepared in `data_dir`.

    Such a folder has the layout of TensorFlow Datasets. Nothing is downloaded.
    """
    prepared = tfds_rows.find_prepared(task, data_dir)
    if prepared is None or split not in task.all_splits:
        problem = (
            f"No data of task `{task.name}` in {data_dir}. Expected "
            f"{folders.layout(task, data_dir)}."
        )
        return Source(task, split, problem=problem)
    return _tfds_source(task, split, prepared)


def _in_tfds(task: Task, split: str) -> "Source":
    """Returns the `Source` of a split in TensorFlow Datasets' default folder.

    If the data are not prepared there, reading them downloads them.
    """
    if not task.source:
        problem = (
            f"Task `{task.name}` is not in TensorFlow Datasets. Give its files "
            f"with --data_dir=<folder>, as {folders.layout(task, '<folder>')}."
        )
        return Source(task, split, problem=problem)
    if split not in task.all_splits:
        problem = _unknown_split(task, split, task.all_splits)
        return Source(task, split, problem=problem)
    prepared = tfds_rows.find_prepared(task, tfds_rows.default_directory())
    return _tfds_source(task, split, prepared)


def _tfds_source(task: Task, split: str, prepared: Any) -> "Source":
    name = task.all_splits[split]
    read = partial(tfds_rows.read_prepared, task, name, prepared)
    if prepared is None:
        read = partial(tfds_rows.download, task, name)
    return Source(
        task,
        split,
        read,
        is_secret=split in task.unlabeled_splits,
        needs_network=prepared is None,
    )


def _unknown_split(task: Task, split: str, known: Any) -> str:
    return unknown(f"split of task `{task.name}`,", split, sorted(known))
