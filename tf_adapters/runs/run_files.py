"""Checks the content of `result.json` and `metrics.jsonl` before use."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.common.text_files import hash_of_json
from tf_adapters.common.text_files import parse_json
from tf_adapters.common.text_files import read_file
from tf_adapters.common.text_files import read_json
from tf_adapters.common.text_files import replace_text
from tf_adapters.data.rows.splits import EVALUATED

if TYPE_CHECKING:
    from pathlib import Path


def _is_number(value: Any) -> bool:
    # JSON allows integers that do not fit in 64 bits.
    return isinstance(value, float) or (
        isinstance(value, int) and abs(value) < 2**63
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str | None)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _are_numbers(value: Any) -> bool:
    return _is_mapping(value) and all(map(_is_number, value.values()))


def _are_tasks(value: Any) -> bool:
    return _is_mapping(value) and all(
        _is_mapping(splits) and all(map(_are_numbers, splits.values()))
        for splits in value.values()
    )


def _is_transfer(value: Any) -> bool:
    if not _is_mapping(value) or not _is_mapping(value.get("languages")):
        return False
    averages = {k: v for k, v in value.items() if k not in _OF_TRANSFER}
    return _are_numbers(averages) and all(
        _is_language(one, value.get("metric"))
        for one in value["languages"].values()
    )


_OF_TRANSFER = ("languages", "metric")


def _is_language(value: Any, metric: Any) -> bool:
    if not _is_mapping(value) or not isinstance(value.get("split"), str):
        return False
    numbers = {k: v for k, v in value.items() if k != "split"}
    # The metric may be of any type, also of one that is not hashable.
    return _are_numbers(numbers) and metric in list(numbers)


_NUMBERS = ("trained_weights", "head_weights", "encoder_weights", "seed")
_NUMBERS += ("seconds", "training_seconds", "merging_seconds", "mean_metric")
_NUMBERS += ("examples_per_second", "padding_share", "best_step", "steps")
_NUMBERS += ("examples", "trials", "best_trial", "encoder_bytes")
_OF_RESULT = {
    **dict.fromkeys(_NUMBERS, _is_number),
    **dict.fromkeys(EVALUATED, _are_numbers),
    **dict.fromkeys(("before", "method_report", "pretraining"), _are_numbers),
    **dict.fromkeys(("task", "method", "encoder"), _is_text),
    **dict.fromkeys(("commit", "device"), _is_text),
    **dict.fromkeys(("data_fingerprint", "versions"), _is_mapping),
    "transfer_fingerprint": _is_mapping,
    **dict.fromkeys(("settings", "merged"), _is_mapping),
    "tasks": _are_tasks,
    "transfer": _is_transfer,
}


def check_result(result: dict[str, Any]) -> None:
    """Raises a `UserError` if a value in a result has the wrong type.

    Args:
        result: Content of a `result.json`. Known keys may be missing, and
            unknown keys are allowed.
    """
    if not _is_mapping(result):
        raise UserError("it is not a mapping")
    for key, value in result.items():
        if not _OF_RESULT.get(key, lambda value: True)(value):
            raise UserError(
                f"`{key}` has another type than runs write. Received: "
                f"{_short(value)}"
            )


# Key of the checksum in `result.json`.
_CHECKSUM = "result_sha256"
_NO_CHECKSUM = object()


def write_result(path: Path, result: dict[str, Any]) -> None:
    """Writes a `result.json` with a checksum of its content.

    Args:
        path: Path of the file. A file there is replaced.
        result: Dict of values that can be stored as JSON.
    """
    whole = {**result, _CHECKSUM: hash_of_json(result)}
    replace_text(path, json.dumps(whole, indent=2) + "\n")


def read_result(path: Path) -> dict[str, Any]:
    """Returns the content of a `result.json`, without its checksum.

    Early versions wrote no checksum. Their files are read as they are.

    Raises:
        UserError: If the file cannot be read or is damaged.
    """
    result = read_json(path)
    check_result(result)
    checksum = result.pop(_CHECKSUM, _NO_CHECKSUM)
    if checksum not in (_NO_CHECKSUM, hash_of_json(result)):
        raise UserError(
            "its checksum differs. If you changed the file on purpose, remove "
            f"`{_CHECKSUM}` from it"
        )
    return result


def _short(value: Any) -> str:
    return f"{value!r:.100}"


def read_records(path: Path, count: int | None = None) -> list[Any]:
    """Returns the records in a `metrics.jsonl`: a list of dicts with a `step`.

    Args:
        path: Path of the file.
        count: Number of lines to read. Later ones may be damaged. `None`
            (default) for all.

    Raises:
        UserError: If the file cannot be read or is damaged. Names the line.
    """
    try:
        lines = read_file(path).decode().splitlines()
    except UserError as error:
        raise UserError(f"{path} cannot be read: {error}.") from error
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is damaged: not UTF-8 at byte {error.start + 1}."
        ) from error
    return [_record(path, *line) for line in enumerate(lines[:count], 1)]


def _record(path: Path, number: int, line: str) -> Any:
    try:
        record = parse_json(line)
    except UserError as error:
        raise UserError(
            f"{path} is damaged in line {number}: {error}."
        ) from error
    if not _is_record(record):
        raise UserError(
            f"{path} is damaged in line {number}: expected a step and numbers. "
            f"Received: {line:.100}."
        )
    return record


def _is_record(record: dict[str, Any]) -> bool:
    step = record.get("step") if _is_mapping(record) else None
    # `isinstance` would accept `True` as an integer.
    return (
        type(step) is int
        and 0 <= step < 2**63
        and all(itertools.starmap(_is_logged, record.items()))
    )


def _is_logged(name: str, value: Any) -> bool:
    if name in ("validation", "gradient_norms"):
        return _are_numbers(value)
    return _is_text(value) or _is_number(value) or _are_numbers(value)
