"""Checks the splits of a task before training, and warns of problems."""

from __future__ import annotations

import collections
from collections.abc import Sequence
import logging
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import DataError
from tf_adapters.data.examples import IGNORED

if TYPE_CHECKING:
    from tf_adapters.tasks.task import Task


_LOGGER = logging.getLogger(__name__)
_MAX_NAMED = 5


def labeled_rows(
    rows: Sequence[Any], split: str, task: Task
) -> Sequence[Any] | list[Any]:
    """Returns the rows with labels; warns if rows without labels are dropped.

    It is common that no row of a split has a label, because labels can be
    secret. This causes a warning only if the task has files of its own.

    Args:
        rows: List of rows of one split.
        split: Name of the split.
        task: `Task`.

    Returns:
        List of rows with a label. Empty if no row has a label, or no word has
        a tag. All rows if the task has no labels.
    """
    if task.kind.label == "none":
        return rows
    missing = [i for i, row in enumerate(rows) if row["label"] is None]
    if len(missing) == len(rows) or _lacks_tags(rows, task):
        if task.files:
            _LOGGER.warning(
                "Task `%s`: no row of the %s split has a label in field `%s`, "
                "so the split is not evaluated.",
                *(task.name, split, task.label_field),
            )
        return []
    if missing:
        _LOGGER.warning(
            "Task %s: %d of %d %s rows have no label and are left out; the "
            "first is row %d (counted from 0). The metrics cover the other "
            "rows.",
            *(_named(task), len(missing), len(rows), split, missing[0]),
        )
    return [row for row in rows if row["label"] is not None]


def check_tags(rows: dict[str, list[dict[str, Any]]], task: Task) -> None:
    """Raises a `DataError` if the words of a split have no tags at all.

    Args:
        rows: Dict from split to rows, see `splits.load_rows`.
        task: `Task`.
    """
    for split, some in rows.items():
        if _lacks_tags(some, task):
            raise DataError(
                f"Task `{task.name}`: the {split} rows have no label: each of "
                f"their words has `_` or null in field `{task.label_field}`. "
                "Expected a tag for some of the words."
            )


def _named(task: Task) -> str:
    """Returns a task's name, with its language if it has one."""
    name = f"`{task.name}`"
    return f"{name} ({task.language})" if task.language else name


def _lacks_tags(rows: Any, task: Task) -> bool:
    return task.kind.label == "class_a_word" and not any(
        tag != IGNORED for row in rows for tag in row["label"] or ()
    )


def warn_of_overlap(rows: dict[str, list[dict[str, Any]]], task: Task) -> None:
    """Warns of training texts in other splits, and of untrained classes.

    An untrained class occurs in another split, but not in the training split.
    A few such rows can be legitimate, so the warnings give their number, and
    all rows are kept.

    Args:
        rows: Dict from split to rows, see `splits.load_rows`.
        task: `Task` with its class names.
    """
    for split in [name for name in rows if name != "train"]:
        _warn_of_repeated(rows, split, task)
        _warn_of_untrained(rows, split, task)


def _warn_of_repeated(rows: Any, split: str, task: Task) -> None:
    # A set of all training rows could take too much memory.
    here = {_texts(row, task) for row in rows[split]}
    here &= {t for row in rows["train"] if (t := _texts(row, task)) in here}
    repeated = [row for row in rows[split] if _texts(row, task) in here]
    if repeated:
        _LOGGER.warning(
            "Task `%s`: %d of %d %s rows have the same texts as a training "
            "row, first %.200s. The metrics include these rows and are too "
            "high. Remove them from one of the two splits.",
            task.name,
            len(repeated),
            len(rows[split]),
            split,
            _texts(repeated[0], task),
        )


def _texts(row: dict[str, Any], task: Task) -> tuple[Any, ...]:
    values = (row[field] for field in task.text_fields)
    return tuple(
        tuple(value) if isinstance(value, list) else value for value in values
    )


def _warn_of_untrained(rows: Any, split: str, task: Task) -> None:
    if task.head not in ("classification", "tagging"):
        return
    counts = _count_classes(rows[split])
    for known in _count_classes(rows["train"]):
        counts.pop(known, None)
    if counts:
        named = [
            f"`{task.labels[label]}` ({count})"
            for label, count in counts.most_common(_MAX_NAMED)
        ]
        _LOGGER.warning(
            "Task `%s`: %d classes occur in %s but never in training, so they "
            "cannot be predicted: %s. Train on rows of each class.",
            task.name,
            len(counts),
            split,
            ", ".join(named) + (", ..." if len(counts) > _MAX_NAMED else ""),
        )


def _count_classes(rows: Any) -> Any:
    """Returns a `Counter` of the class ids that are labels of rows or words."""
    labels = [row["label"] for row in rows]
    return collections.Counter(
        label
        for found in labels
        for label in (found if isinstance(found, list) else [found])
        if label not in (None, IGNORED)
    )
