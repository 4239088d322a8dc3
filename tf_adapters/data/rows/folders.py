"""Finds a task's folder and files under `data_dir`."""

from pathlib import Path

from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut

_SUFFIXES = (".jsonl", ".csv", ".tsv", ".conllu", ".conll")


def split_files(task, split, data_dir):
    """Returns a task's folder, or `None`, and the possible files of a split.

    Files can be named after the split or after its name in TensorFlow Datasets,
    with `dev` or `validation`.

    Args:
        task: `Task`.
        split: Name of the split.
        data_dir: Folder with data of tasks.
    """
    stems = [split]
    named = task.all_splits.get(split, split)
    if named.isidentifier():
        stems.append(named)
    stems = dict.fromkeys(
        stem.replace("validation", word)
        for stem in stems
        for word in ("dev", "validation")
    )
    folder = local_folder(task, data_dir)
    if folder:
        files = [folder / (s + end) for s in stems for end in _SUFFIXES]
        if split in task.file_stems:
            files.append(folder / f"{task.file_stems[split]}.json")
        return folder, files
    if task.glue and (Path(data_dir) / task.glue.folder).is_dir():
        folder = Path(data_dir) / task.glue.folder
        return folder, [folder / f"{stem}.tsv" for stem in stems]
    return None, []


def local_folder(task, data_dir):
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


def _holds_prepared(task, folder):
    """Returns whether a folder has only what TensorFlow Datasets prepared.

    Its folder can have the task's name, but has no files, only folders.
    """
    source = task.source.split("/")[0]
    return source == folder.name and not any(
        path.is_file() for path in folder.iterdir()
    )


def layout(task, folder):
    """Returns a text for errors: the possible paths of a task's files."""
    name = task.folder or task.name
    text = f"{folder}/{name}/{{train,dev,test}}.jsonl (or .csv, .tsv)"
    if task.glue:
        text += f", or GLUE's own {folder}/{task.glue.folder}/train.tsv"
    if task.source:
        text += f", or {folder}/{task.source} as TensorFlow Datasets makes it"
    return text
