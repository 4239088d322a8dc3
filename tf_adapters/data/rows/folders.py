"""Where a task lies under `data_dir`: its folder, and its files there."""

from pathlib import Path

from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut

_SUFFIXES = (".jsonl", ".csv", ".tsv", ".conllu", ".conll")


def split_files(task, split, data_dir):
    """Returns the folder that holds the task, if any, and its possible files.

    A split may have the task's name for it or that of TensorFlow Datasets, and
    `dev` for `validation`.
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
    """Returns the folder of a task's own files, or None.

    In a language it may go on with `_`: treebanks have names (`en_ewt`).
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
    """Says whether a folder is what TensorFlow Datasets made, and no more.

    It may have the task's name: then it holds folders only.
    """
    source = task.source.split("/")[0]
    return source == folder.name and not any(
        path.is_file() for path in folder.iterdir()
    )


def layout(task, folder):
    """Returns text that says where a task's files may lie in `folder`."""
    name = task.folder or task.name
    text = f"{folder}/{name}/{{train,dev,test}}.jsonl (or .csv, .tsv)"
    if task.glue:
        text += f", or GLUE's own {folder}/{task.glue.folder}/train.tsv"
    if task.source:
        text += f", or {folder}/{task.source} as TensorFlow Datasets makes it"
    return text
