"""Creates a task from a table with texts and labels, without a task file.

The options are, for example, `--data=reviews.csv --text=review --label=stars`.
The classes are read from the table later; see `data.rows.table_checks`.
"""

import os
from pathlib import Path
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.tasks.output_kinds import KINDS
from tf_adapters.tasks.task import MAX_NAME
from tf_adapters.tasks.task import Task

_ENDINGS = (".csv", ".tsv", ".jsonl")
_METRICS = {"classification": ("accuracy", "macro_f1")}


def name_of_table(file: str) -> str:
    """Returns the name of the task that is created from a table file.

    It is the name of the file without folder and suffix, or the beginning of a
    name that is too long for a task.
    """
    stem = Path(file).stem.encode(errors="surrogatepass")
    return stem[:MAX_NAME].decode(errors="ignore") or "table"


def task_of_table(name: str, data: Any, check_files: bool = True) -> Task:
    """Creates a task, without class names, from a table of texts and labels.

    Args:
        name: Name of the task.
        data: `DataConfig` whose `file` is the table.
        check_files: Whether to check that the files exist and are tables.
            Defaults to `True`.

    Raises:
        ConfigError: If a file does not exist or is not a table, or if the
            head does not support this number of text columns.
    """
    files = {
        "train": data.file,
        "validation": data.validation_file,
        "test": data.test_file,
    }
    files = {split: file for split, file in files.items() if file}
    if check_files:
        for split, file in files.items():
            _check_file(split, file)
    if len(data.text) not in KINDS[data.head].num_fields:
        raise ConfigError(
            "--text names the columns with the texts, separated by commas. "
            f"With --head={data.head}, a row has "
            f"{KINDS[data.head].fields_in_words.strip(',')}. Received: "
            f"{cut(', '.join(data.text) or 'none')}"
        )
    return Task(
        name=name,
        text_fields=tuple(data.text),
        head=data.head,
        metrics=_METRICS.get(data.head),
        cite=data.file,
        label_field=data.label,
        files=files,
    )


def _check_file(split: str, file: str) -> None:
    flag = {"train": "data"}.get(split, split)
    if not os.path.isfile(file):
        raise ConfigError(
            f"There is no file {cut(file)}. Say where it is with --{flag}=."
        )
    if Path(file).suffix.lower() not in _ENDINGS:
        raise ConfigError(
            f"--{flag}={cut(file)}: expected a table with a header line, as "
            ".csv or .tsv, or one object per line, as .jsonl. Save it as one "
            "of these."
        )
