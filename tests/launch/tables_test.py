"""Tests that tables in memory are written as files, or refused."""

import json

import numpy as np
import pandas as pd
import pytest

from tests import dataset_double
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import UserError
from tf_adapters.launch import tables
from tf_adapters.launch.table_writing import write_json_lines


def _written(path, data, text=("text",), label="label", **options):
    write_json_lines(path, "data", data, text, label, **options)
    return [json.loads(line) for line in path.read_text().splitlines()]


EXPECTED = [{"text": "a\nb", "label": 1}, {"text": "ü\u2028", "label": 2}]
COLUMNS = {"text": ["a\nb", "ü\u2028"], "label": [1, 2], "other": [None, 3.0]}


@pytest.mark.parametrize(
    "data",
    [
        COLUMNS,
        pd.DataFrame(COLUMNS),
        pd.DataFrame(COLUMNS, index=[7, 7]).convert_dtypes(),
        {name: np.array(values) for name, values in COLUMNS.items()},
        [
            {"text": "a\nb", "label": 1},
            {"text": "ü\u2028", "label": 2, "other": 3.0},
        ],
    ],
    ids=["dict", "frame", "dtypes", "arrays", "rows"],
)
def test_each_kind_of_table(tmp_path, data):
    assert _written(tmp_path / "x.jsonl", data) == EXPECTED


def test_classes_of_a_data_set_have_their_names(tmp_path, monkeypatch):
    data = dataset_double.table(monkeypatch, ["a", "b"], [1, 0], ["no", "yes"])
    rows = _written(tmp_path / "x.jsonl", data)
    assert [row["label"] for row in rows] == ["yes", "no"]


def test_a_class_id_of_minus_one_is_no_label(tmp_path, monkeypatch):
    data = dataset_double.table(monkeypatch, ["a", "b"], [1, -1], ["no", "yes"])
    with pytest.raises(DataError, match="row 1: column `label` has no label"):
        _written(tmp_path / "x.jsonl", data)
    rows = _written(tmp_path / "x.jsonl", data, labeled=False)
    assert [row["label"] for row in rows] == ["yes", None]


def test_only_a_test_table_may_lack_labels(tmp_path):
    rows = {"text": ["a", "b"], "label": [1, None]}
    with tables.as_files({"test": rows}, "text", "label") as files:
        (path,) = files.paths
        assert list(map(json.loads, path.read_text().splitlines())) == [
            {"text": "a", "label": 1},
            {"text": "b", "label": None},
        ]
    with tables.as_files({"test": {"text": ["a"]}}, "text", "label") as files:
        assert json.loads(files.paths[0].read_text()) == {"text": "a"}
    with (
        pytest.raises(DataError, match="row 1: column `label` has no label"),
        tables.as_files({"validation": rows}, "text", "label"),
    ):
        pass


def test_pandas_floats_of_a_column_with_gaps_are_classes(tmp_path):
    data = pd.DataFrame({"text": ["a", "b"], "label": [1, None]})
    rows = _written(tmp_path / "x.jsonl", data, labeled=False)
    assert repr([row["label"] for row in rows]) == "[1, None]"
    data["label"] = [1.5, None]
    rows = _written(tmp_path / "x.jsonl", data, labeled=False)
    assert [row["label"] for row in rows] == [1.5, None]


def test_heads_without_labels_need_no_label_column():
    pairs = pd.DataFrame({0: ["a"], "b": ["c"]})
    with tables.as_files(
        {"data": pairs}, (0, "b"), "label", "sentence_ranking"
    ) as files:
        assert json.loads(files.paths[0].read_text()) == {"0": "a", "b": "c"}


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (5, "`data` must be a pandas.DataFrame"),
        ([], "`data` must be a pandas.DataFrame"),
        ({"text": [], "label": []}, "`data` has no rows"),
        ({"txt": ["a"], "label": [1]}, "no column `text`.*mean `txt`"),
        ({"text": ["a"]}, "no column `label`"),
        ({"text": ["a"], "label": []}, "must have one length"),
        ({"text": ["a"], "label": [{}]}, r"received {} \(dict\)"),
        ({"text": "a", "label": [1]}, r"Put a single text.*`\[value\]`"),
        ({"text": ["\ud800"], "label": [1]}, "is half a character. Remove it"),
        (
            pd.DataFrame([["a", "b", 1]], columns=["text", "text", "label"]),
            "2 columns with the name `text`. Rename them",
        ),
        ({"text": ["a", ""], "label": [1, None]}, "has 2 faults"),
        ({"text": [None] * 12, "label": [1] * 12}, "row 9: .*\n  and 2 more"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, data, sentence):
    with pytest.raises(UserError, match=sentence):
        _written(tmp_path / "x.jsonl", data)
