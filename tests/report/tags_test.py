"""Compares entities by kind with counts by hand."""

from pathlib import Path

import pytest

from tf_adapters import heads
from tf_adapters.report import run_files
from tf_adapters.report import tags
from tf_adapters.runs.predictions import Predictions

# PER: one of two found; LOC: one found that is none. A word without a tag
# ends what stands before it.
RIGHT = [["B-PER", "I-PER", "O", "B-PER"], ["O", None, "O"]]
PREDICTED = [["B-PER", "I-PER", "O", "O"], ["B-LOC", "I-LOC", "O"]]
LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


def _find(labels=LABELS, right=RIGHT, predicted=PREDICTED):
    head = heads.name_of(heads.Tagging(LABELS))
    compared = {"target": right, "predicted": predicted}
    stored = Predictions(head, compared, Path("run"), labels)
    run = run_files.RunFiles(None, {}, [], {}, "test", stored)
    found = tags.tags_content(run)
    return {table.title: table for table in found.tables}, found


@pytest.mark.parametrize("labels", [LABELS, ()])
def test_entities_count_by_kind(labels):
    tables, found = _find(labels)
    assert tables["Entities"].rows == [
        ["LOC", 0, 0.0, 0.0, 0.0],
        ["PER", 2, 1.0, 0.5, pytest.approx(2 / 3)],
        ["all", 2, 0.5, 0.5, 0.5],
    ]
    assert [p.name for p in found.pictures] == ["entities", "confusion"]


def test_entities_of_bilou_count_as_in_the_runs_f1():
    right = [["B-PER", "L-PER", "U-LOC", "O"]]
    predicted = [["B-PER", "L-PER", "O", "U-LOC"]]
    tables, _ = _find((*LABELS, "L-PER", "U-LOC"), right, predicted)
    assert tables["Entities"].rows == [
        ["LOC", 1, 0.0, 0.0, 0.0],
        ["PER", 1, 1.0, 1.0, 1.0],
        ["all", 2, 0.5, 0.5, 0.5],
    ]


def test_words_without_a_tag_are_left_out():
    tables, found = _find()
    assert sum(row[1] for row in tables["Each class"].rows) == 6
    assert [row[:2] for row in found.errors.rows] == [
        [0, "word 3"],
        [1, "word 0"],
    ]


def test_tags_of_words_have_no_entities():
    right = [["NOUN", "VERB"]]
    tables, _ = _find(("NOUN", "VERB"), right, right)
    assert "Entities" not in tables
