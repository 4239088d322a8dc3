"""Converts a table's rows to rows of a task, and reports all problems."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
import math
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.common.text_files import check_unicode
from tf_adapters.data.rows import list_fields
from tf_adapters.data.rows import squad
from tf_adapters.data.rows.class_ids import class_id

if TYPE_CHECKING:
    from tf_adapters.data.rows.table import Table
    from tf_adapters.tasks.task import Task


def typed_rows(
    table: Table, task: Task, labels: str = "required"
) -> list[dict[Any, Any]]:
    """Checks every row of a table and converts its label.

    Args:
        table: A `table.Table`.
        task: The `Task` with the names of fields and classes.
        labels: `"required"` (default); `"optional"`, rows without a label get
            `None`; or `"ignored"`, all rows get `None`.

    Returns:
        List of dicts. They have a string for each of `task.text_fields`, or a
        list of strings for `task.list_field`. `"label"` depends on the kind of
        task: a class id; a float for regression; the index of the right choice;
        a sorted list of class ids; a list with the class id, or `IGNORED`, of
        each word; a list of answers; or `None` for no label.

    Raises:
        DataError: If there are no rows, or if any row is malformed. The error
            lists the first ten problems.
    """
    if task.kind.label == "none":
        labels = "ignored"
    problem = _missing_column(table, task, labels)
    if problem:
        table.problems.append((1, problem))
        table.raise_problems()
    rows = list(_typed(table, task, labels))
    table.raise_problems()
    table.raise_empty(rows)
    return rows


def _typed(
    table: Table, task: Task, labels: Sequence[str]
) -> Iterator[dict[Any, Any]]:
    for line, fields in table.rows:
        row, problems = _typed_row(line, fields, task, labels)
        table.problems += [(line, problem) for problem in problems]
        yield row


def _missing_column(
    table: Table, task: Task, labels: Sequence[str]
) -> str | None:
    """Returns an error message if a column is missing or repeated, or `None`.

    Without this check of the header, each row would report the problem again.
    """
    if table.columns is None:
        return None
    wanted = [(field, task.aliases.get(field)) for field in task.text_fields]
    if labels == "required":
        alias = task.aliases.get(task.label_field)
        wanted.append((task.label_field, alias))
    for field, alias in wanted:
        for name in (field, alias):
            if table.columns.count(name) > 1:
                return f"the header has the column `{cut(name)}` more than once"
        others = set(task.choice_fields) if field == task.list_field else set()
        if others and others <= set(table.columns):
            continue
        if field not in table.columns and alias not in table.columns:
            return (
                f"the header lacks the column {_names(field, alias)}; it has "
                f"{cut(', '.join(f'`{name}`' for name in table.columns))}"
            )
    return None


def _names(field: str, alias: Any) -> str:
    return f"`{field}`" + (f" (or `{alias}`)" if alias else "")


def _typed_row(
    number: int, fields: Any, task: Task, labels: Sequence[str]
) -> tuple[dict[Any, Any], list[Any]]:
    row, problems = {}, []
    for field in task.text_fields:
        try:
            if field == task.list_field:
                row[field] = list_fields.list_of_texts(fields, field, task)
            else:
                row[field] = _text(fields, field, task)
        except ValueError as error:
            problems.append(str(error))
    if task.id_field:
        own = fields.get(task.id_field)
        row[task.id_field] = str(number if own is None else own)
    row["label"] = None
    if labels != "ignored":
        try:
            row["label"] = _label(fields, task, row)
        except ValueError as error:
            problems.append(str(error))
        else:
            if row["label"] is None and labels == "required":
                problems.append(f"field `{task.label_field}` has no label")
    return row, problems


def _text(fields: Any, field: str, task: Task) -> str:
    alias = task.aliases.get(field)
    key = alias if field not in fields and alias in fields else field
    if key not in fields:
        received = ", ".join(f"`{name}`" for name in fields) or "no field"
        raise UserError(
            f"field {_names(field, alias)} is missing; received {cut(received)}"
        )
    value = fields[key]
    if value is None and field in task.optional_fields:
        return ""
    if not isinstance(value, str):
        raise UserError(
            f"field `{key}` must be text, received {shown(value)} "
            f"({type(value).__name__})"
        )
    check_unicode(value)
    return value


def _label(fields: Any, task: Task, row: Any) -> Any:
    value = fields.get(task.label_field)
    if value is None:
        value = fields.get(task.aliases.get(task.label_field))
    if task.kind.label == "choice":
        return list_fields.parse_choice_index(value, row.get(task.list_field))
    if task.kind.label == "answers":
        return squad.parse_answers(value)
    if task.kind.label == "classes":
        return list_fields.parse_classes(value, task.labels)
    if task.kind.label == "class_a_word":
        return list_fields.parse_tags(
            value, row.get(task.list_field), task.labels
        )
    return parse_label(value, task)


def parse_label(value: Any, task: Task) -> float | None:
    """Returns the class id or the number of a label.

    Args:
        value: A class name or id (see `class_ids`), or, for regression, a
            number or a text with one. `None` and empty text mean no label.
        task: The `Task` with the class names.

    Returns:
        Integer class id, float, or `None` for no label.

    Raises:
        UserError: If the value is not a label of the task.
    """
    if value is None or value == "":
        return None
    if task.kind.label == "number":
        return _number(value, task.label_range)
    return class_id(value, task.labels)


def _number(value: Any, label_range: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise UserError(
            f"a label must be a number, received {shown(value)} "
            f"({type(value).__name__})"
        )
    try:
        number = float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise UserError(
            f"a label must be a finite number, received {shown(value)}"
        )
    if label_range and not label_range[0] <= number <= label_range[1]:
        raise UserError(
            f"label {number:g} is outside the task's range from "
            f"{label_range[0]:g} to {label_range[1]:g}"
        )
    return number
