"""Writes predictions to a file, in the format that its name implies."""

from __future__ import annotations

from collections.abc import Iterable
import csv
import json
from pathlib import Path
import types
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.text_files import replace_text
from tf_adapters.data.rows import conll
from tf_adapters.tasks.output_kinds import KINDS

if TYPE_CHECKING:
    from tf_adapters.tasks.task import Task


def check_output_file(path: Path, task: Task) -> None:
    """Raises a `UserError` if a file's format cannot hold a task's outputs."""
    suffix = Path(path).suffix
    for_it = [n for n, kind in KINDS.items() if suffix in kind.file_formats]
    if for_it and task.head not in for_it:
        raise UserError(
            f"--output={path}: files of this name are for tasks of the kind "
            f"{' or '.join(for_it)}, and `{task.name}` is a {task.head}. Give "
            "a name that ends in .jsonl."
        )
    if not for_it and suffix not in ("", ".jsonl", ".csv"):
        raise UserError(
            f"--output={path}: expected a name that ends in "
            f"{', '.join(('.jsonl', '.csv', *task.kind.file_formats))}. "
            f"Received: {suffix}"
        )


def write_predictions(path: Path, rows: Iterable[Any], task: Task) -> int:
    """Writes predictions to a file.

    - `.conllu`, `.conll`: tagged sentences.
    - `.json`: answers in the format of SQuAD's evaluation, an object from
      question id to answer.
    - `.csv`: a column for each field and each class.
    - Any other name: JSON lines.

    Args:
        path: Path of the file. Missing folders are created.
        rows: Iterable of dicts, each with a task's fields and a prediction.
        task: `Task`.

    Returns:
        Number of rows.

    Raises:
        UserError: If the format cannot store the predictions.
    """
    path, rows = Path(path), list(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, _content(path.suffix, rows, task))
    return len(rows)


def _content(suffix: str, rows: Any, task: Task) -> str:
    if suffix == ".csv":
        return _csv(rows)
    if suffix == ".json":
        lines = [json.dumps(_answers(rows), ensure_ascii=False)]
    elif suffix in (".conllu", ".conll"):
        lines_of = (
            conll.conllu_lines if suffix == ".conllu" else conll.column_lines
        )
        (field,) = task.text_fields
        lines = [
            line for row in rows for line in lines_of(row[field], row["tags"])
        ]
    else:
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def _csv(rows: Any) -> str:
    """Returns rows as CSV, with a column for each key of nested dicts."""
    flat = [_flat(row) for row in rows]
    columns = dict.fromkeys(name for row in flat for name in row)
    lines: list[str] = []
    # The module quotes only the characters of its own line end, and readers
    # take a carriage return outside of quotes for the end of a row.
    ending = "\r\n"
    file: Any = types.SimpleNamespace(write=lines.append)
    writer = csv.DictWriter(file, columns, lineterminator=ending)
    writer.writeheader()
    writer.writerows(flat)
    return "".join(f"{line.removesuffix(ending)}\n" for line in lines)


def _flat(row: dict[str, Any]) -> dict[Any, Any]:
    flat = {}
    for name, value in row.items():
        if isinstance(value, dict):
            for key, inner in value.items():
                # A class can have the same name as a field.
                flat[f"{name}.{key}" if key in row else key] = inner
        elif isinstance(value, list):
            flat[name] = json.dumps(value, ensure_ascii=False)
        else:
            flat[name] = value
    return flat


def _answers(rows: Any) -> dict[Any, Any]:
    """Returns a dict from question id to answer."""
    answers = {}
    for row in rows:
        if row["id"] in answers:
            raise UserError(
                f"Two questions have the id {shown(row['id'])}, and a .json "
                "file holds one answer for each id. Give --output a name that "
                "ends in .jsonl."
            )
        answers[row["id"]] = row["answer"]
    return answers
