"""Tests when a label is a class name and when an id, for all heads."""

import pytest

from tf_adapters.common.errors import DataError
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.rows.table import Table
from tf_adapters.data.rows.typed_rows import typed_rows
from tf_adapters.tasks.task import Task

STARS, WORDS, YES = ("1", "2", "3"), ("no", "yes"), ("false", "true")
FIELDS = {"tagging": "tokens"}
HEADS = ("classification", "multilabel", "tagging")


def _id(head, labels, value):
    """Returns the class id that a head gets for a label in a file."""
    field = FIELDS.get(head, "text")
    task = Task("t", (field,), labels=labels, head=head)
    row = {field: ["a"] if head == "tagging" else "a"}
    row["label"] = value if head == "classification" else [value]
    (typed,) = typed_rows(Table("a", [(1, row)]), task, labels="optional")
    found = typed["label"]
    return found if head == "classification" else (*found, IGNORED)[0]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(
    ("labels", "value", "expected"),
    [
        (STARS, 1, 0),
        (STARS, "3", 2),
        (("-1", "0", "1"), -1, 0),
        (("1", "2", "other"), 2, 1),
        (WORDS, 1, 1),
        (WORDS, "1", 1),
        (WORDS, "yes", 1),
        (YES, True, 1),
        (("True", "False"), True, 0),
        (("_", "x"), "_", 0),
    ],
)
def test_a_name_comes_before_an_id(head, labels, value, expected):
    assert _id(head, labels, value) == expected


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("value", [None, "", -1, "-1"])
def test_no_label(head, value):
    assert _id(head, WORDS, value) in (None, IGNORED)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(
    ("labels", "value", "message"),
    [
        (STARS, 0, "unknown label '0'; expected one of '1', '2', '3'\n"),
        (STARS, -1, "unknown label '-1'"),
        (("-1.0", "0.0", "1.0"), "1", "unknown label '1'"),
        (("1", "2", "other"), 0, "unknown label '0'"),
        (WORDS, 2, "unknown label '2'; .* or an id from 0 to 1\n"),
        (WORDS, -2, "unknown label '-2'"),
        (WORDS, True, "unknown label 'true'"),
        (WORDS, 1.0, r"received 1.0 \(float\)"),
        (WORDS, {"a": 1}, r"\(dict\)"),
    ],
)
def test_what_is_neither_is_refused(head, labels, value, message):
    with pytest.raises(DataError, match=message):
        _id(head, labels, value)


def test_a_blank_is_no_class_of_a_text():
    """It means "no tag" only for words."""
    assert _id("tagging", WORDS, "_") == IGNORED
    for head in ("classification", "multilabel"):
        with pytest.raises(DataError, match="unknown label '_'"):
            _id(head, WORDS, "_")
