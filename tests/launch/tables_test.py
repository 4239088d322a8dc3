"""Tests that tables in memory are written as files, or refused."""

import json

import numpy as np
import pandas as pd
import pytest

from tf_adapters.common.errors import DataError
from tf_adapters.launch import tables


def _written(path, data, text=("text",), label="label"):
    tables.write_json_lines(path, "data", data, text, label)
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


def test_classes_of_a_data_set_have_their_names(tmp_path):
    datasets = pytest.importorskip("datasets")
    label = datasets.ClassLabel(names=["no", "yes"])
    features = datasets.Features({"text": datasets.Value("string"), "l": label})
    data = datasets.Dataset.from_dict(
        {"text": ["a", "b"], "l": [1, 0]}, features=features
    )
    rows = _written(tmp_path / "x.jsonl", data, label="l")
    assert [row["l"] for row in rows] == ["yes", "no"]


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
        ({"text": ["a", ""], "label": [1, None]}, "has 2 faults"),
        ({"text": [None] * 12, "label": [1] * 12}, "row 9: .*\n  and 2 more"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, data, sentence):
    with pytest.raises(DataError, match=sentence):
        _written(tmp_path / "x.jsonl", data)
