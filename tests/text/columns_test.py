"""Tests the forms of texts and labels, without a model."""

import sys
import types

import numpy as np
import pandas as pd
import pytest

from tests import dataset_double
from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.text import table_reading
from tf_adapters.text.rows import rows_of

CLASSES = heads.Classification(("neg", "pos"))
TEXTS = ["a", "b", "c"]


def _labels(*arguments, **options):
    return [row["label"] for row in rows_of(*arguments, **options)]


@pytest.mark.parametrize("dtype", [int, bool, float])
def test_an_array_of_0_and_1_is_a_mark_for_each_class(dtype):
    given = np.array([[0, 1], [1, 1], [0, 0]], dtype)
    head = heads.MultiLabel(("x", "y"))
    expected = [[1], [0, 1], []]
    assert _labels(TEXTS, given, head) == expected
    assert _labels({"text": TEXTS, "label": given}, None, head) == expected
    numbers = heads.MultiLabel(("1", "2"))
    assert _labels(TEXTS, given, numbers) == expected


class _Tensor:
    """Imitates a tensor of JAX or PyTorch."""

    def __init__(self, values):
        self._values = values
        self.ndim = 2

    def __array__(self, dtype=None, copy=None):
        return np.array(self._values, dtype)

    def tolist(self):
        return self._values


@pytest.mark.parametrize(
    "form",
    [
        _Tensor,
        lambda rows: [np.array(row) for row in rows],
        lambda rows: pd.Series([np.array(row) for row in rows]),
        lambda rows: np.array(rows, dtype=object),
    ],
)
def test_marks_are_also_read_from_tensors_and_lists_of_arrays(form):
    head = heads.MultiLabel(("x", "y"))
    given = form([[1, 0], [0, 1], [0, 0]])
    assert _labels(TEXTS, given, head) == [[0], [1], []]


def _dicts(columns):
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


@pytest.mark.parametrize("form", [pd.DataFrame, _dicts])
def test_marks_are_also_read_from_the_column_of_a_table(form):
    head = heads.MultiLabel(("x", "y"))
    marks = [np.array(row) for row in [[1, 0], [0, 1], [0, 0]]]
    table = form({"text": TEXTS, "label": marks})
    assert _labels(table, None, head) == [[0], [1], []]
    lists = form({"text": TEXTS, "label": [[0], [0, 1], []]})
    assert _labels(lists, None, head) == [[0], [0, 1], []]


@pytest.mark.parametrize("row", [[0, 0], [1, 1], ["0", "0"]])
def test_two_marks_for_two_classes_are_no_list_of_ids(row):
    head = heads.MultiLabel(("x", "y"))
    assert _labels(TEXTS[:2], [[0, 1], [0]], head) == [[0, 1], [0]]
    with pytest.raises(UserError, match=r"row 0: .* not a 0 or 1 for each"):
        rows_of(TEXTS[:1], [row], head)


@pytest.mark.parametrize("form", [list, pd.Series])
def test_lists_of_0_and_1_for_each_class_are_refused(form):
    head = heads.MultiLabel(("x", "y", "z"))
    given = [[0, 0, 1], [2], [0, 1]]
    with pytest.raises(UserError, match=r"row 0: .* not a 0 or 1 for each"):
        rows_of(TEXTS, form(given), head)
    assert _labels(TEXTS[1:], given[1:], head) == [[2], [0, 1]]


def test_class_ids_of_a_data_set_are_matched_by_name(monkeypatch):
    data = dataset_double.table(monkeypatch, TEXTS, [0, 1, 0], ["pos", "neg"])
    assert _labels(data, None, CLASSES) == [1, 0, 1]
    names = ["pos", "neutral"]
    other = dataset_double.table(monkeypatch, TEXTS, [0, 1, 0], names)
    with pytest.raises(UserError, match="unknown label 'neutral'.*'neg'"):
        rows_of(other, None, CLASSES)


@pytest.mark.parametrize("head", [CLASSES, heads.Regression(), heads.Choice()])
def test_class_ids_stay_where_no_name_is_known(monkeypatch, head):
    data = dataset_double.table(
        *(monkeypatch, TEXTS, [0, 1, -1], ["no", "yes"]),
    )
    names, column = table_reading.read_table(data, head.labels)
    assert column("label") == [0, 1, None]


def test_tags_of_a_data_set_are_matched_by_name(monkeypatch):
    data = dataset_double.table(
        *(monkeypatch, [["a", "b"]], [[1, -1]], ["O", "B"]), is_list=True
    )
    head = heads.Tagging(("B", "O"))
    assert _labels(data, None, head, text="text") == [[0, -1]]


def test_pairs_may_be_arrays():
    pairs = [np.array(["a", "b"]), np.array(["c", "d"])]
    rows = list(rows_of(pairs, [0, 1], CLASSES))
    assert rows[1] == {"text_a": "c", "text_b": "d", "label": 1}
    with pytest.raises(UserError, match="Row 1 .* must hold 2 texts"):
        rows_of([*pairs[:1], np.array(["c"])], [0, 1], CLASSES)


@pytest.mark.parametrize("form", [pd.DataFrame, list])
def test_columns_may_have_numbers_as_names(form):
    table = form([{0: "a", 1: 1}, {0: "b", 1: 0}])
    assert _labels(table, None, CLASSES, text=0, label=1) == [1, 0]


def test_one_split_of_a_dict_must_be_passed(monkeypatch):
    class DatasetDict(dict):
        pass

    module = types.SimpleNamespace(Dataset=list, DatasetDict=DatasetDict)
    monkeypatch.setitem(sys.modules, "datasets", module)
    splits = DatasetDict(train=TEXTS, test=TEXTS)
    with pytest.raises(UserError, match=r"train, test. Pass .*data\['train'\]"):
        rows_of(splits, None, CLASSES)


def test_labels_may_be_a_tensor():
    tf = pytest.importorskip("tensorflow")
    assert _labels(TEXTS, tf.constant([1, 0, 1]), CLASSES) == [1, 0, 1]


def test_answers_may_hold_arrays():
    frame = pd.DataFrame({"question": ["who"], "context": ["a fine film"]})
    answer = {"text": np.array(["fine"]), "answer_start": np.array([2])}
    frame["answers"] = [answer]
    (found,) = _labels(frame, None, heads.Span(), label="answers")
    assert found == [{"text": "fine", "answer_start": 2}]


@pytest.mark.parametrize(
    ("texts", "labels", "sentence"),
    [
        ({"text": "fine"}, None, r"'fine'. Put a single .*: `\[value\]`"),
        (TEXTS, 1, r"Received: 1. Put a single"),
        (TEXTS, np.int64(1), "Put a single"),
        (["a \ud800"], [1], r"row 0: .*half a character. Remove it: `text.enc"),
        ([("a", "b"), 5], [1, 0], "Row 1 .* must hold 2 texts"),
        (
            pd.DataFrame([["a", "b"]], columns=["text", "text"]),
            [1],
            "2 columns with the name `text`. Rename them",
        ),
    ],
)
def test_what_cannot_be_read_is_explained(texts, labels, sentence):
    with pytest.raises(UserError, match=sentence):
        rows_of(texts, labels, CLASSES)


@pytest.mark.parametrize("form", [set, frozenset])
def test_class_names_have_an_order(form):
    with pytest.raises(UserError, match="in the order of their ids"):
        heads.Classification(form(["neg", "pos"]))
