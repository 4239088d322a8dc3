"""Where the rows of a task come from: one function for every source.

A task's own files come first, then generated texts, then what lies under
`data_dir`: local files, the official GLUE download, or a set that TensorFlow
Datasets prepared. Without `data_dir` it is TensorFlow Datasets.
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
        data_dir: Folder with the data; see the module. None for none.

    Returns:
        List of dicts: a string for each of
        `task.text_fields`, and `"label"`: a class id, a float for regression,
        or None in a test split without labels.

    Raises:
        DataError: If the split is not there, or rows are malformed.
    """
    task = resolve_labels(task, data_dir)
    labels = "optional" if split.startswith("test") else "required"
    if _is_secret(task, split, data_dir):
        labels = "ignored"
    table = _read_table(task, split, data_dir)
    return typed_rows(table, task, labels)


def load_train_and_validation(task, data_dir=None, seed=0):
    """Loads both splits, and parts the training split if there is only that.

    Args:
        task: A `Task`.
        data_dir: See `load_split`.
        seed: Integer. Chooses the rows that are held out where the data has no
            validation split, a tenth of training's; of a table, a tenth of
            each class.

    Returns:
        Lists of rows for training and validation.

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
        task: A `Task`; its classes must be known if labels are read.
        path: `.jsonl`, `.csv`, `.tsv`; for one text field `.txt` with a text a
            line; for words `.conllu` or `.conll`; for spans SQuAD's `.json`.
        with_labels: Whether labels are read where there are any.

    Returns:
        List of rows, as `load_split`.

    Raises:
        DataError: If the file is missing or rows are malformed.
    """
    fields = task.text_fields
    table = read_file(path, fields[0] if len(fields) == 1 else None)
    return typed_rows(table, task, "optional" if with_labels else "ignored")


def load_stream(task, file, origin):
    """Loads rows to predict from an open file, a text a line or JSON lines.

    Args:
        task: A `Task`. Of one text field, lines are texts, unless the first is
            an object with this field.
        file: Binary file.
        origin: What an error message calls it.

    Returns:
        List of rows, as `load_split`.

    Raises:
        DataError: If rows are malformed, or there are none.
    """
    fields = task.text_fields
    table = open_stream(file, origin, fields[0] if len(fields) == 1 else None)
    return typed_rows(table, task, "ignored")


def resolve_labels(task, data_dir=None):
    """Returns the task with the class names of its training file, if needed.

    A few tasks state no class names; then they are the sorted names that occur
    in training. Other tasks are returned as they are.
    """
    if task.kind.label != "class" or task.labels:
        return task
    table = _read_table(task, "train", data_dir)
    names = (fields.get(task.label_field) for _, fields in table.rows)
    found = sorted({str(name) for name in names if name not in (None, "")})
    table.raise_problems()
    if len(found) < 2:
        raise DataError(
            f"The classes of task `{task.name}` are those that occur in field "
            f"`{task.label_field}` of {table.origin}, which needs at least "
            f"two. Received: {cut(found)}"
        )
    return dataclasses.replace(task, labels=tuple(found))


def has_split(task, split, data_dir=None):
    """Says whether a split of a task is there, without reading it."""
    if task.files:
        return split in task.files
    if data_dir is None or task.source.startswith(_BUILTIN):
        return split in task.all_splits
    folder, files = folders.split_files(task, split, data_dir)
    if folder:
        return any(file.is_file() for file in files)
    return _is_from_tfds(task, split, data_dir)


def may_have_labels(task, split, data_dir=None):
    """Says whether a split is there and not known to lack labels.

    It is not read: that of a large task would take minutes.
    """
    return has_split(task, split, data_dir) and not _is_secret(
        task, split, data_dir
    )


def check_source_exists(task, split, data_dir=None):
    """Raises a `DataError` if a split is nowhere; reads nothing of it."""
    _find_reader(task, split, data_dir)


def _is_secret(task, split, data_dir):
    return split in task.unlabelled_splits and _is_from_tfds(
        task, split, data_dir
    )


def _read_table(task, split, data_dir):
    return _find_reader(task, split, data_dir)()


def _find_reader(task, split, data_dir):
    """Returns a function that reads a split from where it was found."""
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
    rows = generated.generate(task.source.removeprefix(_BUILTIN), split)
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
    """Says whether a known split would be read from TensorFlow Datasets."""
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
