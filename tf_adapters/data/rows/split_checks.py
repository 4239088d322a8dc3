"""What the splits of a task tell of each other before anything trains."""

import collections
import logging

from tf_adapters.data.encoded import IGNORED

_LOGGER = logging.getLogger(__name__)
_MAX_NAMED = 5


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
