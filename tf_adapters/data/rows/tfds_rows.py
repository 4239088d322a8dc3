"""Rows from TensorFlow Datasets, and a clear sentence where that cannot be.

The prepared files are looked for first, then it is seen whether there is a
network.
"""

import functools
import logging
import os
from pathlib import Path

import numpy as np

from tf_adapters.common import network
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut
from tf_adapters.data.rows import folders
from tf_adapters.data.rows.files import Table

# One of these answering means that there is a network; the first holds most of
# GLUE and SuperGLUE, the second what TensorFlow Datasets keeps itself.
_HOSTS = ("https://dl.fbaipublicfiles.com", "https://storage.googleapis.com")
_LOGGER = logging.getLogger(__name__)


def default_directory():
    """Returns the folder in which TensorFlow Datasets keeps what it made."""
    return os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"


def find_prepared(task, directory):
    """Returns the newest prepared version of a task's data, or None.

    Args:
        task: A `Task` with a `source` in TensorFlow Datasets.
        directory: Folder that would hold it.
    """
    root = Path(directory).expanduser() / task.source
    found = [info.parent for info in root.glob("*/dataset_info.json")]
    return max(found, key=_version, default=None)


def _version(path):
    return [
        int(part) if part.isdecimal() else -1 for part in path.name.split(".")
    ]


def read_prepared(task, split, path):
    """Reads a split of a prepared set; needs no network.

    Args:
        task: A `Task`.
        split: Split in the words of TensorFlow Datasets, slices included.
        path: What `find_prepared` returned.

    Returns:
        A `Table` with class names for labels; the numbers are row numbers.
    """
    import tensorflow_datasets as tfds

    return _read(task, split, tfds.builder_from_directory(str(path)))


def find_reader(task, split):
    """Returns a function that reads a split, downloaded first where needed.

    Args:
        task: A `Task` with a `source` in TensorFlow Datasets.
        split: Split in the words of TensorFlow Datasets, slices included.

    Returns:
        Function without arguments that returns a `Table`, as `read_prepared`,
        or raises a `DataError` if preparing the data failed.

    Raises:
        DataError: If the data are not prepared and, as is found out within
            ten seconds, there is no network.
    """
    prepared = find_prepared(task, default_directory())
    if prepared:
        return functools.partial(read_prepared, task, split, prepared)
    if not network.answers(*_HOSTS):
        raise DataError(_no_data(task, "and no network answers"))
    return functools.partial(_download, task, split)


def _download(task, split):
    import tensorflow_datasets as tfds

    builder = tfds.builder(task.source)
    try:
        builder.download_and_prepare()
    # Whatever goes wrong in there is for the user the same: no data.
    except Exception as error:
        reason = (
            f"and preparing it failed ({type(error).__name__}: {cut(error)})"
        )
        raise DataError(_no_data(task, reason)) from error
    return _read(task, split, builder)


def _no_data(task, reason):
    return (
        f"Task `{task.name}` needs `{task.source}` of TensorFlow Datasets, "
        f"which is not prepared in {default_directory()}, {reason}: either "
        "give local files with --data_dir=<folder>, as "
        f"{folders.layout(task, '<folder>')}; or prepare it on a machine with "
        'a network (python -c "import tensorflow_datasets as tfds; '
        f"tfds.load('{task.source}', data_dir='<folder>')\") and point "
        "--data_dir or TFDS_DATA_DIR at that folder."
    )


def _read(task, split, builder):
    import tensorflow_datasets as tfds

    dataset = builder.as_dataset(split=split, shuffle_files=False)
    label_feature = builder.info.features[task.label_field]
    # Those of a sequence of labels are one level down.
    label_feature = getattr(label_feature, "feature", label_feature)
    names = getattr(label_feature, "names", None)
    fields = {*task.text_fields, *task.choice_fields, task.id_field}
    is_secret = split in task.unlabelled_splits.values()
    rows = []
    wordless = 0
    for number, example in enumerate(tfds.as_numpy(dataset), start=1):
        if task.kind.list_field == "words" and not len(
            example[task.list_field]
        ):
            # Treebanks that are released without their words.
            wordless += 1
            continue
        row = {
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


def _place(example, is_secret, number):
    """Returns the place of an example in the official file, or a number.

    TensorFlow Datasets shuffles rows when it stores them, always in the same
    way, and keeps their place as `idx`. It matters where somebody else has the
    labels: GLUE's server scores predictions by their place.
    """
    place = np.asarray(example.get("idx", number))
    # That of SuperGLUE's MultiRC is a dict, that of others a text.
    is_number = np.issubdtype(place.dtype, np.integer)
    return int(place) if is_secret and is_number else number


def _plain(value, language=""):
    """Returns a text, or a list of texts; of translations that one."""
    if isinstance(value, dict) and "translation" in value:
        texts = value["translation"].tolist()
        value = dict(zip(_plain(value["language"]), texts, strict=True))
    if isinstance(value, dict):
        value = value[language]
    if isinstance(value, bytes):
        return value.decode()
    return [part.decode() for part in value]


def _label(value, names, task):
    """Returns a class by its name, so that its order there does not matter."""
    kind = task.kind.label
    if kind == "choice":
        # A choice is known by its place, whatever that is called there.
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


def _class_name(value, names):
    """Returns the name of an id: a number there is never a name itself."""
    if isinstance(value, bytes):
        return value.decode()
    if value < 0:
        return None
    if not names:  # They are those that occur in training.
        return int(value)
    if value >= len(names):
        raise DataError(
            f"TensorFlow Datasets has the class id {value}, expected one from "
            f"0 to {len(names) - 1}: {', '.join(names):.200}"
        )
    return names[int(value)]
