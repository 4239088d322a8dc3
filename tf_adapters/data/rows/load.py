"""Loads the rows of a task from any source.

Sources, in order of precedence: the task's own files; generated texts; under
`data_dir`, if given, local files, the official GLUE download, or a data set
prepared by TensorFlow Datasets; without `data_dir`, TensorFlow Datasets.
"""

import dataclasses
import functools

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut
from tf_adapters.data.rows import folders
from tf_adapters.data.rows import generated
from tf_adapters.data.rows import sampling
from tf_adapters.data.rows import tfds_rows
from tf_adapters.data.rows.files import Table
from tf_adapters.data.rows.files import open_file
from tf_adapters.data.rows.files import open_stream
from tf_adapters.data.rows.files import read_file
from tf_adapters.data.rows.files import read_glue_file
from tf_adapters.data.rows.typed_rows import typed_rows

_BUILTIN = "builtin:"


def load_split(task, split, data_dir=None):
    """Loads one split of a task.

    Args:
        task: A `Task`.
        split: `"train"`, `"validation"`, `"test"`, or another of the task's
            splits (`"validation_mismatched"` of MNLI).
        data_dir: Folder with the data, or `None` (default); see the module's
            docstring.

    Returns:
        List of dicts with `task.text_fields` and `"label"`, which is `None`
        for test rows without labels; see `typed_rows`.

    Raises:
        DataError: If the split is missing or has malformed rows.
    """
    task = resolve_labels(task, data_dir)
    labels = "optional" if split.startswith("test") else "required"
    if _is_secret(task, split, data_dir):
        labels = "ignored"
    table = _read_table(task, split, data_dir)
    return typed_rows(table, task, labels)


def load_train_and_validation(task, data_dir=None, seed=0):
    """Loads the training and validation splits.

    If the data has no validation split, a tenth of the training rows is held
    out for it. If the task has files of its own and classes, it is a tenth of
    each class.

    Args:
        task: A `Task`.
        data_dir: See `load_split`.
        seed: Integer. Chooses the held-out rows. Defaults to 0.

    Returns:
        Two lists of rows, for training and validation.

    Raises:
        DataError: See `load_split`.
    """
    train = load_split(task, "train", data_dir)
    if has_split(task, "validation", data_dir):
        return train, load_split(task, "validation", data_dir)
    if task.files and task.kind.label == "class":
        return sampling.hold_out_of_each_class(train, seed)
    return sampling.hold_out(train, max(1, round(0.1 * len(train))), seed)


def load_file(task, path, with_labels=False):
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


def load_stream(task, file, origin):
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
    fields = task.text_fields
    table = open_stream(file, origin, fields[0] if len(fields) == 1 else None)
    return typed_rows(table, task, "ignored")


def resolve_labels(task, data_dir=None):
    """Returns a task with its class names.

    If a task does not state its class names, they are the sorted names that
    occur in the training split. Other tasks are returned unchanged.

    Raises:
        DataError: If the training split cannot be read or has fewer than two
            classes.
    """
    if task.kind.label != "class" or task.labels:
        return task
    table = _read_table(task, "train", data_dir)
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


def has_split(task, split, data_dir=None):
    """Returns whether a split of a task exists, without reading it."""
    if task.files:
        return split in task.files
    if data_dir is None or task.source.startswith(_BUILTIN):
        return split in task.all_splits
    folder, files = folders.split_files(task, split, data_dir)
    if folder:
        return any(file.is_file() for file in files)
    return _is_from_tfds(task, split, data_dir)


def may_have_labels(task, split, data_dir=None):
    """Returns whether a split exists and is not known to lack labels.

    The split is not read, which can take minutes for a large task.
    """
    return has_split(task, split, data_dir) and not _is_secret(
        task, split, data_dir
    )


def check_source_exists(task, split, data_dir=None):
    """Raises a `DataError` if a split is not found; does not read it."""
    _find_reader(task, split, data_dir)


def _is_secret(task, split, data_dir):
    return split in task.unlabeled_splits and _is_from_tfds(
        task, split, data_dir
    )


def _read_table(task, split, data_dir):
    return _find_reader(task, split, data_dir)()


def _find_reader(task, split, data_dir):
    """Finds a split; returns a function that reads it into a `Table`."""
    if split == "train" and task.train_task:
        return _find_reader(task.train_task, split, data_dir)
    if task.files:
        _check_known(task, split, task.files)
        return functools.partial(open_file, task.files[split])
    _check_known(task, split, {"test", *task.all_splits})
    if task.source.startswith(_BUILTIN):
        return functools.partial(_generate, task, split)
    if data_dir is not None:
        return _find_in_folder(task, split, data_dir)
    if not task.source:
        raise DataError(
            f"Task `{task.name}` is not in TensorFlow Datasets. Give its files "
            f"with --data_dir=<folder>, as {folders.layout(task, '<folder>')}."
        )
    return tfds_rows.find_reader(task, _tfds_split(task, split))


def _generate(task, split):
    rows = generated.read_rows(task.source.removeprefix(_BUILTIN), split)
    return Table(f"{task.source}, split {split}", list(enumerate(rows, 1)))


def _find_in_folder(task, split, data_dir):
    folder, files = folders.split_files(task, split, data_dir)
    for file in files:
        if file.is_file() and folder == folders.local_folder(task, data_dir):
            return functools.partial(open_file, file)
        if file.is_file():
            return functools.partial(read_glue_file, file, task)
    if folder:
        here = ", ".join(sorted(file.name for file in folder.iterdir()))
        raise DataError(
            f"Task `{task.name}` has no {split} split in {folder}. Looked for: "
            f"{', '.join(file.name for file in files)}. Found: {cut(here)}."
        )
    if _is_from_tfds(task, split, data_dir):
        prepared = tfds_rows.find_prepared(task, data_dir)
        return functools.partial(
            tfds_rows.read_prepared, task, _tfds_split(task, split), prepared
        )
    raise DataError(
        f"No data of task `{task.name}` in {data_dir}. Expected "
        f"{folders.layout(task, data_dir)}."
    )


def _is_from_tfds(task, split, data_dir):
    """Returns whether a split would be read from TensorFlow Datasets."""
    if task.files or not task.source or task.source.startswith(_BUILTIN):
        return False
    known = split in task.all_splits
    if data_dir is None:
        return known
    folder, _ = folders.split_files(task, split, data_dir)
    prepared = tfds_rows.find_prepared(task, data_dir)
    return known and folder is None and prepared is not None


def _tfds_split(task, split):
    _check_known(task, split, task.all_splits)
    return task.all_splits[split]


def _check_known(task, split, known):
    what = f"split of task `{task.name}`,"
    check_known(what, split, sorted(known), DataError)
