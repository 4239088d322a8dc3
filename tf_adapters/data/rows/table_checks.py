"""Checks a table of texts and labels, and finds its classes.

Labels can be whole numbers if there are at most 100 different numbers. More
numbers, or numbers with a fraction, raise an error that suggests regression.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
import dataclasses
import itertools
import logging
import math
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.checks import did_you_mean
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.data.rows.class_ids import is_number
from tf_adapters.data.rows.files import open_file

if TYPE_CHECKING:
    from tf_adapters.data.rows.table import Table
    from tf_adapters.tasks.task import Task


_LOGGER = logging.getLogger(__name__)
_MOST_NUMBERS = 100
# With fewer rows, a tenth of them is not enough to validate on.
_LEAST_ROWS = 10


def resolve_table(task: Task) -> Task:
    """Checks a table's files and returns its task with class names.

    Args:
        task: `Task` with `files`; see `tasks.task_of_table`.

    Raises:
        DataError: If a column, text or label is missing, there are too few
            rows, or the labels cannot be classes.
    """
    counts = {split: _check(task, split) for split in task.files}
    rows = counts["train"].total()
    if rows < _LEAST_ROWS and "validation" not in task.files:
        raise DataError(
            f"{task.files['train']} has {rows} rows, some of which are held "
            f"out for validation. Expected at least {_LEAST_ROWS} rows, or "
            "other rows in --validation=<file>."
        )
    if task.kind.label != "class":
        return task
    labels = _class_names(counts["train"], task)
    for split in counts:
        _check_not_ids(counts[split], labels, task, split)
    return dataclasses.replace(task, labels=labels)


def _check(task: Task, split: str) -> Any:
    """Checks a file's rows, and returns a counter of its labels."""
    table = open_file(task.files[split])
    _check_columns(table, task, split)
    counts, quoted = collections.Counter(), []
    for number, fields in table.rows:
        for name in task.text_fields:
            if not quoted and _is_quoted(fields.get(name)):
                quoted.append(number)
            if fields.get(name) in (None, ""):
                problem = f"field `{name}` has no text"
                table.problems.append((number, problem))
        label = fields.get(task.label_field)
        if label in (None, "") and _needs_label(task, split):
            problem = f"field `{task.label_field}` has no label"
            table.problems.append((number, problem))
        counts[_hashable(label)] += 1
    table.raise_problems()
    table.raise_empty(counts)
    if quoted and table.origin.lower().endswith(".tsv"):
        _LOGGER.warning(
            "%s, line %d, has a text in quotes, and quotes are part of the "
            "text in a .tsv file. If a program has added them, save the table "
            "as .csv.",
            *(table.origin, quoted[0]),
        )
    return counts


def _is_quoted(text: Any) -> bool:
    """Returns whether a text looks as if a program had quoted it for CSV."""
    is_text = isinstance(text, str) and len(text) > 1
    return is_text and text[0] == text[-1] == '"' and '""' in text[1:-1]


def _check_not_ids(
    counts: Any, labels: tuple[str, ...], task: Task, split: str
) -> None:
    """Raises a `DataError` if a table has ids in place of class names.

    Classes of a table are sorted by the alphabet, but its user does not see the
    order. If a class name is a number, no label is taken for an id.
    """
    are_known = {label.lower() for label in labels} == {"false", "true"}
    if are_known or any(map(is_number, labels)):
        return
    texts = map(str, counts)
    ids = [text for text in texts if text.isdecimal() and text not in labels]
    if ids:
        raise DataError(
            f"{task.files[split]} has the label {shown(ids[0])}, but the "
            f"classes of {task.files['train']} are {cut(', '.join(labels))}. "
            "Write the names of the classes in both tables."
        )


def _hashable(label: Any) -> Any:
    return str(label) if isinstance(label, list | dict) else label


def _check_columns(table: Table, task: Task, split: str) -> None:
    """Raises a `DataError` if a column that the task reads is missing."""
    columns = table.columns
    if columns is None:  # JSON lines have no header; the first row counts.
        rows = iter(table.rows)
        first = next(rows, None)
        table.rows = () if first is None else itertools.chain([first], rows)
        columns = tuple(first[1]) if first else ()
    if not columns:
        table.raise_problems()
        raise DataError(
            f"{table.origin} is empty. Expected a header line, and a row for "
            "each example."
        )
    named = [("text", name) for name in task.text_fields]
    if _needs_label(task, split):
        named.append(("label", task.label_field))
    for flag, name in named:
        if name not in columns:
            raise DataError(
                f"{table.origin} has no column `{cut(name)}`. Its columns are "
                f"{cut(', '.join(f'`{c}`' for c in columns))}: name one with "
                f"--{flag}=.{did_you_mean(name, columns)}"
            )


def _needs_label(task: Task, split: str) -> bool:
    return split != "test" and task.kind.label != "none"


def _class_names(counts: Any, task: Task) -> tuple[Any, ...]:
    """Returns the labels in `counts` as sorted class names.

    If all are numbers, they are sorted as numbers.
    """
    where = f"Column `{task.label_field}` of {task.files['train']}"
    names = collections.Counter()
    for label, count in counts.items():
        names[str(label)] += count
    numbers = {name: _number(name) for name in names}
    if None not in numbers.values():
        _check_whole(numbers, counts, where)
    _check_repeated(names, where, "validation" in task.files)
    if None in numbers.values():
        _warn_of_spellings(names, where, lambda name: name.strip().casefold())
        names = sorted(names)
    else:
        _warn_of_spellings(names, where, numbers.get)
        names = sorted(names, key=lambda name: (numbers[name], name))
    if len(names) < 2:
        raise DataError(
            f"{where} has the same label in all rows, {shown(names[0])}. "
            "Expected at least two classes."
        )
    return tuple(names)


def _number(name: str) -> float | None:
    try:
        return float(name)
    except ValueError:
        return None


def _check_whole(numbers: Any, counts: Any, where: str) -> None:
    lost = [n for n, value in numbers.items() if not math.isfinite(value)]
    if lost:
        raise DataError(
            f"{where} has {shown(lost[0])} among numbers. Correct these rows, "
            "or leave them out."
        )
    fractions = [n for n, value in numbers.items() if not value.is_integer()]
    if fractions:
        raise DataError(
            f"{where} has numbers with a fraction, such as {fractions[0]}, "
            "which are not classes. Add --head=regression to predict the "
            "number."
        )
    # A JSON number with a decimal point, such as 1.0, is not a class name.
    floats = [label for label in counts if isinstance(label, float)]
    if floats:
        raise DataError(
            f"{where} has floats, such as {floats[0]}, which are not names of "
            "classes. Write classes as whole numbers, in pandas with "
            "`.astype(int)`, or add --head=regression to predict the number."
        )
    if len(numbers) > _MOST_NUMBERS:
        raise DataError(
            f"{where} has {len(numbers)} different numbers, more than the "
            f"{_MOST_NUMBERS} that can be classes. Add --head=regression to "
            "predict the number."
        )


def _check_repeated(names: Any, where: str, has_validation: Any) -> None:
    """Raises a `DataError` if so few labels repeat that they are not classes.

    The column then probably holds ids, texts or dates. `names` is a counter of
    the labels.
    """
    total = names.total()
    are_many = len(names) > _MOST_NUMBERS and 2 * len(names) > total
    if are_many or (len(names) == total > 1 and not has_validation):
        raise DataError(
            f"{where} has {len(names)} different values in {total} "
            f"rows, such as {shown(next(iter(names)))}. Expected the column of "
            "the classes: name it with --label=."
        )


def _warn_of_spellings(
    names: Any, where: str, meaning: Callable[[str], Any]
) -> None:
    """Warns of classes that are probably the same one.

    Args:
        names: Counter of the names of the classes.
        where: Names the column and the file, for the message.
        meaning: Function that returns the same value for such names.
    """
    spellings = collections.defaultdict(list)
    for name in names:
        spellings[meaning(name)].append(name)
    for alike in spellings.values():
        if len(alike) > 1:
            _LOGGER.warning(
                "%s: %s are different classes here. Spell them the same way "
                "if they mean the same.",
                where,
                " and ".join(f"{shown(n)} ({names[n]})" for n in alike),
            )
