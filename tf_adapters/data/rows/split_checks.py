"""What is said of the splits of a task before anything trains."""

import collections
import logging

from tf_adapters.common.errors import DataError
from tf_adapters.data.encoded import IGNORED

_LOGGER = logging.getLogger(__name__)
_MAX_NAMED = 5


def labelled_rows(rows, split, task):
    """Returns the rows that can be evaluated; says what is left out.

    A split without any label is usual where somebody else has the labels. So
    that is said only of a file that the task names itself.

    Args:
        rows: List of rows of one split.
        split: Name of the split.
        task: `Task`.

    Returns:
        List of rows with a label; empty if no row, or no word, has one.
    """
    if task.kind.label == "none":
        return rows
    missing = [i for i, row in enumerate(rows) if row["label"] is None]
    if len(missing) == len(rows) or _lacks_tags(rows, task):
        if task.files:
            _LOGGER.warning(
                "Task `%s`: no row of the %s split has a label in field `%s`, "
                "so that the split is not evaluated.",
                *(task.name, split, task.label_field),
            )
        return []
    if missing:
        _LOGGER.warning(
            "Task %s: %d of %d %s rows have no label and are left out; the "
            "first is row %d (counted from 0). The metrics are those of the "
            "others.",
            *(_named(task), len(missing), len(rows), split, missing[0]),
        )
    return [row for row in rows if row["label"] is not None]


def check_tags(rows, task):
    """Raises a `DataError` if a split has words, but not a single tag.

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


def _named(task):
    """Returns a task's name, and the language if it has several."""
    name = f"`{task.name}`"
    return f"{name} ({task.language})" if task.language else name


def _lacks_tags(rows, task):
    return task.kind.label == "class_a_word" and not any(
        tag != IGNORED for row in rows for tag in row["label"] or ()
    )


def warn_of_overlap(rows, task):
    """Warns of texts in two splits, and of classes that never train.

    Both are wrong only if they are many: the numbers say so, and nothing is
    left out.

    Args:
        rows: Dict from split to rows, see `splits.load_rows`.
        task: `Task` with its class names.
    """
    for split in [name for name in rows if name != "train"]:
        _warn_of_repeated(rows, split, task)
        _warn_of_untrained(rows, split, task)


def _warn_of_repeated(rows, split, task):
    # The training rows, which may be many, are not held.
    here = {_texts(row, task) for row in rows[split]}
    here &= {t for row in rows["train"] if (t := _texts(row, task)) in here}
    repeated = [row for row in rows[split] if _texts(row, task) in here]
    if repeated:
        _LOGGER.warning(
            "Task `%s`: %d of %d %s rows have the texts of a training row, "
            "the first %.200s. The metrics count them, and are too good by "
            "what training remembers; remove them from one of the two.",
            task.name,
            len(repeated),
            len(rows[split]),
            split,
            _texts(repeated[0], task),
        )


def _texts(row, task):
    values = (row[field] for field in task.text_fields)
    return tuple(
        tuple(value) if isinstance(value, list) else value for value in values
    )


def _warn_of_untrained(rows, split, task):
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
            "Task `%s`: %d classes occur in %s and never in training, so that "
            "they cannot be predicted: %s. Train on rows of each class.",
            task.name,
            len(counts),
            split,
            ", ".join(named) + (", ..." if len(counts) > _MAX_NAMED else ""),
        )


def _count_classes(rows):
    """Returns how often each class id is the label of a row or a word."""
    labels = [row["label"] for row in rows]
    return collections.Counter(
        label
        for found in labels
        for label in (found if isinstance(found, list) else [found])
        if label not in (None, IGNORED)
    )
