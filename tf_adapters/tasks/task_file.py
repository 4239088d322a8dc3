"""Loads a user's own task from a YAML file, without code.

    name: tickets
    text_fields: [subject, body]
    labels: [billing, bug, other]
    metrics: [macro_f1, accuracy]
    files: {train: train.csv, validation: dev.csv, test: test.csv}

Paths of files are relative to the YAML file. `head` defaults to
`classification`.
"""

import logging
import os
from pathlib import Path
from typing import Any

from tf_adapters.common.checks import check_known
from tf_adapters.common.checks import did_you_mean
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.common.text_files import parse_yaml
from tf_adapters.common.text_files import read_text
from tf_adapters.tasks.output_kinds import HINT
from tf_adapters.tasks.output_kinds import KINDS
from tf_adapters.tasks.task import Task

_LOGGER = logging.getLogger(__name__)
_REQUIRED = ("name", "text_fields", "files")
_OPTIONAL = (
    "labels",
    "head",
    "metrics",
    "label_field",
    "label_range",
    "cite",
    "blank",
)
_KEYS = _REQUIRED + _OPTIONAL
_SPLITS = ("train", "validation", "test")


def load_task_file(path: str | Path, check_files: bool = True) -> Task:
    """Loads a task from a YAML file.

    The keys `name`, `text_fields` and `files` are required, and `labels` (the
    class names in the order of their ids) if the head has classes. Optional
    keys are `head` (default: `classification`), `metrics`, `label_field`
    (default: `tags` for tagging, `answers` for spans, otherwise `label`),
    `label_range`, `blank` and `cite`.

    Args:
        path: Path of the YAML file.
        check_files: Whether the data files must exist. Defaults to `True`.

    Returns:
        A `Task`. The paths in its `files` are absolute.

    Raises:
        UserError: If the file cannot be read, a key is unknown or missing, a
            value has the wrong type, or a data file does not exist.
    """
    path = Path(path)
    entries = _read_yaml(path)
    _check_keys(path, "key", entries, _KEYS, _REQUIRED)
    head = entries.get("head", "classification")
    what = f"`head` in task file `{path}`,"
    check_known(what, _string(path, "head", head), KINDS, hint=HINT)
    kind = KINDS[head]
    labels = _strings(path, "labels", entries.get("labels", []))
    if kind.has_classes and not labels:
        raise UserError(
            f"Task file `{path}`: a {head} needs `labels`, the list of its "
            "class names in the order of their ids."
        )
    _check_effect(path, entries, head)
    metrics = entries.get("metrics", list(kind.default_metrics))
    files = _absolute_files(path, entries["files"])
    if check_files:
        _check_there(path, files)
    return Task(
        name=_name(path, entries["name"]),
        text_fields=_strings(path, "text_fields", entries["text_fields"]),
        labels=labels,
        splits={split: split for split in files},
        head=head,
        metrics=_strings(path, "metrics", metrics),
        cite=_string(path, "cite", entries.get("cite", str(path))),
        label_field=_string(
            path,
            "label_field",
            entries.get("label_field", kind.label_field),
        ),
        label_range=_range(path, entries.get("label_range")),
        files=files,
        id_field="id" if kind.label == "answers" else "",
        blank=_string(path, "blank", entries["blank"])
        if "blank" in entries
        else "",
    )


def _check_effect(path: Path, entries: dict[Any, Any], head: str) -> None:
    """Warns of keys that have no effect on this kind of task."""
    kind = KINDS[head]
    has_effect = {
        "label_range": kind.label == "number",
        "blank": kind.label == "choice",
    }
    for key, has_one in has_effect.items():
        if entries.get(key) and not has_one:
            _LOGGER.warning(
                "Task file `%s`: `%s` has no effect on a %s.", path, key, head
            )


def _read_yaml(path: Path) -> dict[Any, Any]:
    try:
        text = read_text(path)
    except UserError as error:
        raise UserError(
            f"Cannot read the task file `{cut(path)}`: {error}."
        ) from error
    try:
        entries = parse_yaml(text)
    except UserError as error:
        raise UserError(f"Task file `{path}` is not YAML: {error}") from error
    if not isinstance(entries, dict):
        raise UserError(
            f"Task file `{path}` must hold keys and values. Received: "
            f"{type(entries).__name__}"
        )
    return entries


def _check_keys(
    path: Path,
    what: str,
    entries: dict[Any, Any],
    known: tuple[str, ...],
    required: tuple[str, ...],
) -> None:
    unknown = [key for key in entries if key not in known]
    if unknown:
        raise UserError(
            f"Task file `{path}` has the unknown {what} `{cut(unknown[0])}`."
            f"{did_you_mean(unknown[0], known)} Known: {', '.join(known)}."
        )
    missing = [key for key in required if key not in entries]
    if missing:
        raise UserError(
            f"Task file `{path}` lacks the {what} `{missing[0]}`. Received "
            f"only: {cut(', '.join(map(str, entries)) or 'nothing')}."
        )


def _string(path: Path, key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UserError(
            f"Task file `{path}`: `{key}` must be text; write numbers and "
            "the words yes, no, on, off, true, false in quotes, since YAML "
            f"reads them as something else. Received: {shown(value)}"
        )
    return value


def _name(path: Path, value: Any) -> str:
    """Returns `value`, after checking that it can be a folder's name."""
    is_name = Path(_string(path, "name", value)).name == value != ".."
    if not is_name or "\0" in value:
        raise UserError(
            f"Task file `{path}`: `name` is also the name of folders, so it "
            f"must not contain `/` or be `..`. Received: {shown(value)}"
        )
    return value


def _strings(path: Path, key: str, values: object) -> tuple[str, ...]:
    values = [values] if isinstance(values, str) else values
    if not isinstance(values, list):
        raise UserError(
            f"Task file `{path}`: `{key}` must be a list. Received: "
            f"{shown(values)}"
        )
    return tuple(_string(path, key, value) for value in values)


def _range(path: Path, value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    is_pair = isinstance(value, list) and len(value) == 2
    # The bounds exclude NaN, and integers that are too large for a float.
    is_pair = is_pair and all(
        type(v) in (int, float) and -1e300 < v < 1e300 for v in value
    )
    if not is_pair or value[0] >= value[1]:
        raise UserError(
            f"Task file `{path}`: `label_range` must be two numbers, the least "
            f"label and the greatest. Received: {shown(value)}"
        )
    return float(value[0]), float(value[1])


def _absolute_files(path: Path, files: object) -> dict[str, str]:
    if not isinstance(files, dict):
        raise UserError(
            f"Task file `{path}`: `files` must map train, validation and, "
            f"optionally, test to a file each. Received: {shown(files)}"
        )
    _check_keys(path, "split", files, _SPLITS, ("train", "validation"))
    return {
        split: _absolute_file(path, f"files.{split}", file)
        for split, file in files.items()
    }


def _absolute_file(path: Path, key: str, value: object) -> str:
    name = _string(path, key, value)
    if "\0" in name:
        raise UserError(
            f"Task file `{path}`: `{key}` must be the path of a file, which "
            f"has no NUL. Received: {shown(value)}"
        )
    return str((path.parent / name).resolve())


def _check_there(path: Path, files: dict[str, str]) -> None:
    for split, file in files.items():
        if not os.path.isfile(file):
            raise UserError(
                f"Task file `{path}`: the file of split `{split}` does not "
                f"exist. Looked for: {cut(file)}"
            )
