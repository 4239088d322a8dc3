"""Tests invalid class names, and rows without class ids."""

import dataclasses

import numpy as np
import pytest

from tf_adapters import heads
from tf_adapters.common.errors import UserError

KINDS = (heads.Classification, heads.MultiLabel, heads.Tagging)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (("a", "b", "a"), "each of them once, .* Received: 'a' 2 times"),
        (("a",), "the names of two classes or more"),
        (("a", 1), "Received: 1"),
        (("a", ""), "Received: ''"),
        ("ab", "Received: 'ab'"),
        ({"a": 1, "b": 0}, "Received: {'a': 1"),
        (3, "Received: 3"),
    ],
)
def test_class_names_that_cannot_be_told_apart_are_refused(
    kind, labels, message
):
    with pytest.raises(ValueError, match=message):
        kind(labels)
    head = kind(("x", "y"))
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(head, labels=labels)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ([0, 2], "label 2; expected a class id from 0 to 1: no, yes"),
        ([-3], "label -3; expected"),
        (["yes"], "label 'yes'; expected"),
        (None, "Row 1 .*Received: None"),
        (1, "list"),
        ("yes", "list"),
        ([[0], [1, 0]], "list"),
    ],
)
@pytest.mark.parametrize("kind", KINDS[1:])
def test_rows_of_lists_hold_class_ids(kind, label, message):
    rows = [{"tokens": ["a", "b"], "label": [1, 0]}]
    rows.append({"tokens": ["a", "b"], "label": label})
    head = kind(("no", "yes"))
    with pytest.raises(ValueError, match=message):
        if kind is heads.Tagging:
            head.encode(rows, ("tokens",), None)
        else:
            head.targets(rows)


TAGS = heads.Tagging(("no", "yes"))
CHOICE = heads.Choice()


@pytest.mark.parametrize(
    ("head", "labels", "message"),
    [
        (TAGS, [[0, 1], [-1, 2]], "^Row 1 .* label 2; expected a class id"),
        (TAGS, [[0, -100]], "^Row 0 .* label -100; expected a class id"),
        (TAGS, [[[0], [0.5]]], "^Row 0 .* label 0.5; expected a class id"),
        (CHOICE, [1, -1], "^Row 1 .* label -1; .* right choice, from 0[.]"),
        (CHOICE, [[0.5], [1]], "^Row 0 .* label 0.5; expected the position"),
    ],
)
def test_labels_of_fit_are_ids(head, labels, message):
    with pytest.raises(UserError, match=message):
        head.check_labels(np.array(labels))


@pytest.mark.parametrize(
    ("head", "labels", "ignored"),
    [
        (TAGS, [[0, 1, -1]], None),
        (TAGS, [[0, 1, -100]], -100),
        (TAGS, [[[0.2, 0.8], [5.0, -3.0]]], None),
        (CHOICE, [0, 3, -100], -100),
        (CHOICE, [[0.2, 0.8]], None),
    ],
)
def test_ignored_labels_and_those_of_other_losses_are_kept(
    head, labels, ignored
):
    head.check_labels(np.array(labels), ignored)
