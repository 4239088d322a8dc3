"""The report on a tagging run, with a tag for each word."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
from seqeval import metrics as seqeval_metrics

from tf_adapters.heads import metrics
from tf_adapters.heads.tagging import labeled_parts
from tf_adapters.report import classes
from tf_adapters.report import mistakes
from tf_adapters.report import scores
from tf_adapters.report.content import Picture
from tf_adapters.report.content import ReportContent
from tf_adapters.report.content import ReportTable
from tf_adapters.report.pictures import draw_entities

if TYPE_CHECKING:
    from tf_adapters.report.run_files import RunFiles


def tags_content(run: RunFiles) -> ReportContent:
    """Returns the `ReportContent` for a tagging run.

    Args:
        run: `RunFiles` of a tagging run. Each prediction is a list with a tag
            for each word.
    """
    compared = run.stored.compared
    words = _words(compared)
    right: Any = [word[2] for word in words]
    predicted: Any = [word[3] for word in words]
    names = _names(run, right, predicted)
    ids = {name: i for i, name in enumerate(names)}
    right = np.array([ids[tag] for tag in right])
    predicted = np.array([ids[tag] for tag in predicted])
    most = names[np.bincount(right).argmax()]
    table, note = scores.table_of_scores(
        run,
        [[most] * len(row) for row in compared["predicted"]],
        f'always "{most}"',
        ("accuracy",),
    )
    tables, pictures = classes.of_classes(right, predicted, names, "words")
    entities, of_entities = _entities(compared, names)
    has_any = "probabilities" in compared
    sureness = [word[4] for word in words] if has_any else None
    calibration = scores.calibration_of(
        right == predicted, sureness, "tags of words"
    )
    return ReportContent(
        [table, *entities, *tables, *calibration[0]],
        [*of_entities, *pictures, *calibration[1]],
        _mistakes(run, words),
        [note] if note else [],
    )


def _words(compared: dict[str, Any]) -> list[tuple[int, int, Any, Any, None]]:
    """Returns a list with a tuple for each word that has a tag.

    The tuple has the index of the row, the position of the word, the true tag,
    the predicted tag, and the predicted tag's probability or `None`.

    Args:
        compared: Dict of lists with one entry per row; see `Head.compare`.
    """
    rows = zip(compared["target"], compared["predicted"], strict=True)
    sureness = compared.get("probabilities") or itertools.repeat(None)
    return [
        (row, place, tag, other, of_row and of_row[place])
        for row, ((tags, others), of_row) in enumerate(
            zip(rows, sureness, strict=False)
        )
        for place, (tag, other) in enumerate(zip(tags, others, strict=True))
        if tag is not None
    ]


def _names(run: RunFiles, *tags: Any) -> list[str]:
    """Returns a list of all tags, in the order of the head's class ids.

    Older files do not store the tags. For these, returns a sorted list of the
    tags that occur in `tags`, which are lists of tags.
    """
    names = run.label_names(0)
    return names or sorted(set().union(*tags))


def _entities(compared: dict[str, Any], names: list[str]) -> tuple[Any, ...]:
    """Returns a table and a picture of the scores of each kind of entity.

    Returns two lists: one with the `ReportTable`, one with the `Picture`. Both
    are empty if the tags do not mark entities.

    Args:
        compared: Dict of lists with one entry per row; see `Head.compare`.
        names: List of all tags.
    """
    parts = [part for row in labeled_parts(compared) for part in row]
    # As for the run's own F1, so that both read BILOU and BMES.
    right, predicted = (
        metrics.entity_tags(part[side] for part in parts) for side in (0, 1)
    )
    if not _mark_entities(names) or not _count(right, predicted):
        return [], []
    found = seqeval_metrics.classification_report(
        right, predicted, output_dict=True, zero_division=0
    )
    kinds = {n: v for n, v in found.items() if not n.endswith(" avg")}
    columns = ("precision", "recall", "f1-score")
    rows = [
        [kind, int(values["support"]), *(float(values[c]) for c in columns)]
        for kind, values in {**kinds, "all": found["micro avg"]}.items()
    ]
    header = ("entity", "entities", "precision", "recall", "F1")
    note = "An entity is right where all its words and its kind are."
    picture = Picture(
        "entities",
        "Precision, recall and F1 of each kind of entity.",
        lambda: draw_entities(rows),
    )
    return [ReportTable("Entities", header, rows, note)], [picture]


def _mark_entities(names: list[str]) -> bool:
    """Returns whether tags, such as `B-PER`, `I-PER` and `O`, mark entities."""
    return any(name.startswith(("B-", "I-")) for name in names)


def _count(right: Any, predicted: Any) -> int:
    found = map(
        seqeval_metrics.sequence_labeling.get_entities, right + predicted
    )
    return sum(map(len, found))


def _mistakes(run: RunFiles, words: Any) -> ReportTable:
    wrong = [word for word in words if word[2] != word[3]]
    # Highest probability first. Without probabilities, keep the data's order.
    wrong.sort(key=lambda word: -(word[4] or 0))
    rows = [
        [row, _word(run, row, place), tag, other, probability]
        for row, place, tag, other, probability in wrong
    ]
    return mistakes.table_of_mistakes(
        run, rows, ("word", "right", "predicted", "probability")
    )


def _word(run: RunFiles, row: int, place: Any) -> Any:
    if run.rows is None:
        return f"word {place}"
    (field,) = run.fields
    return run.rows[row][field][place]
