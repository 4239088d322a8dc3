"""Tests types and labels of rows, and messages for invalid ones."""

import dataclasses

import pytest

from tf_adapters.common.errors import DataError
from tf_adapters.data.rows.table import Table
from tf_adapters.data.rows.typed_rows import parse_label
from tf_adapters.data.rows.typed_rows import typed_rows
from tf_adapters.tasks import get

RTE = get("rte")
STSB = get("stsb")
BOOLQ = get("boolq")
AGNEWS = get("agnews")
HYPERPARTISAN = get("hyperpartisan")
STARS = dataclasses.replace(
    get("cf_airline"), labels=("1", "2", "3"), metrics=("accuracy",)
)


def _typed(task, *rows, **kwargs):
    return typed_rows(
        Table("a.jsonl", list(enumerate(rows, 1))), task, **kwargs
    )


@pytest.mark.parametrize(
    ("task", "value", "expected"),
    [
        (RTE, "entailment", 0),
        (RTE, "not_entailment", 1),
        (RTE, 1, 1),
        (RTE, "1", 1),
        (RTE, None, None),
        (RTE, "", None),
        (RTE, -1, None),
        (RTE, "-1", None),
        (BOOLQ, True, 1),
        (BOOLQ, False, 0),
        (BOOLQ, 1, 1),
        (HYPERPARTISAN, "true", 1),
        (HYPERPARTISAN, True, 1),
        (STARS, "1", 0),
        (STARS, 3, 2),
        (STSB, "3.75", 3.75),
        (STSB, 5, 5.0),
        (STSB, 0.0, 0.0),
        (STSB, None, None),
    ],
)
def test_labels_by_name_and_by_id(task, value, expected):
    label = parse_label(value, task)
    assert label == expected
    assert type(label) is type(expected)


@pytest.mark.parametrize(
    ("task", "value", "message"),
    [
        (RTE, "Entailment", "'entailment', 'not_entailment', or an id from 0"),
        (RTE, 2, "unknown label '2'"),
        (RTE, -2, "unknown label '-2'"),
        (RTE, True, "unknown label 'true'"),
        (RTE, 1.0, r"received 1.0 \(float\)"),
        (RTE, ["entailment"], r"\(list\)"),
        (STARS, 0, "expected one of '1', '2', '3'$"),
        (STARS, -1, "unknown label '-1'"),
        (STSB, "high", "finite number, received 'high'"),
        (STSB, float("nan"), "finite number"),
        (STSB, True, r"received True \(bool\)"),
        (STSB, 5.1, "outside the task's range from 0 to 5"),
    ],
)
def test_other_labels_are_refused(task, value, message):
    with pytest.raises(ValueError, match=message):
        parse_label(value, task)


def test_fields_by_name_or_alias():
    rows = _typed(
        get("mnli"),
        {"premise": "a", "hypothesis": "b", "label": "neutral", "idx": 4},
        {"sentence1": "a", "sentence2": "b", "label": 1},
    )
    assert rows == [{"premise": "a", "hypothesis": "b", "label": 1}] * 2


def test_only_optional_fields_may_be_null():
    row = {"title": None, "description": "d", "label": "Sports"}
    assert _typed(AGNEWS, row) == [
        {"title": "", "description": "d", "label": 1}
    ]
    with pytest.raises(DataError, match="field `description` must be text"):
        _typed(AGNEWS, {**row, "description": None})
    with pytest.raises(DataError, match="field `title` is missing"):
        _typed(AGNEWS, {"description": "d", "label": 0})


def test_all_problems_of_a_file_come_in_one_error():
    with pytest.raises(DataError) as error:
        _typed(
            RTE,
            {"sentence1": "a", "sentence2": "b", "label": 0},
            {"sentence1": 3, "label": "maybe"},
            {"sentence1": "a", "sentence2": "b"},
        )
    lines = str(error.value).split("\n")
    assert lines[0] == "4 malformed rows in a.jsonl:"
    assert sum("line 2: " in line for line in lines) == 3
    assert "  line 3: field `label` has no label" in lines
    assert not any("line 1:" in line for line in lines)


def test_labels_may_be_optional_or_ignored():
    row = {"sentence1": "a", "sentence2": "b"}
    assert _typed(RTE, row, labels="optional")[0]["label"] is None
    labeled = {**row, "label": "entailment"}
    assert _typed(RTE, labeled, labels="optional")[0]["label"] == 0
    odd = {**row, "label": "odd"}
    assert _typed(RTE, odd, labels="ignored")[0]["label"] is None
    with pytest.raises(DataError, match="unknown label 'odd'"):
        _typed(RTE, odd, labels="optional")


def test_a_missing_column_is_said_once():
    table = Table("a.csv", [(2, {"sentence1": "a"})] * 50, ("sentence1",))
    with pytest.raises(DataError) as error:
        typed_rows(table, RTE)
    assert "line 1: the header lacks the column `sentence2`" in str(error.value)
    assert str(error.value).count("line ") == 1


def test_problems_of_the_reader_are_kept():
    table = Table("a.jsonl", [(1, {"sentence1": "a"})], None, [(2, "not JSON")])
    with pytest.raises(DataError, match="3 malformed rows(.|\n)*2: not JSON"):
        typed_rows(table, RTE)
