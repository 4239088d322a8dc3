"""Tests errors.csv: its order, and that spreadsheets execute nothing."""

import csv

import pytest

from tests.report import stored_runs
from tf_adapters import heads
from tf_adapters.report import mistakes
from tf_adapters.report import run_files
from tf_adapters.report import run_report
from tf_adapters.report import several_classes
from tf_adapters.report.content import ReportTable


def _errors(run):
    path = run_report.write_report(run)["errors"]
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_the_most_surely_wrong_row_comes_first(tmp_path):
    compared = {
        "target": [0, 0, 0, 1],
        "predicted": [1, 0, 1, 0],
        "probabilities": [[0.4, 0.6], [0.9, 0.1], [0.1, 0.9], [0.7, 0.3]],
    }
    rows = stored_runs.mails(3, 1)
    run = stored_runs.write(tmp_path, stored_runs.HAM, rows, compared)
    assert _errors(run) == [
        ["row", "text", "right", "predicted", "probability"],
        ["2", "mail 2", "ham", "spam", "0.9"],
        ["3", "mail 3", "spam", "ham", "0.7"],
        ["0", "mail 0", "ham", "spam", "0.6"],
    ]


def test_the_largest_difference_comes_first(tmp_path):
    rows = [{"text": f"text {i}", "label": i} for i in range(3)]
    compared = {"target": [0.0, 1.0, 2.0], "predicted": [0.5, -1.0, 2.0]}
    run = stored_runs.write(tmp_path, heads.Regression(), rows, compared)
    assert _errors(run)[1:] == [
        ["1", "text 1", "1.0", "-1.0", "-2.0"],
        ["0", "text 0", "0.0", "0.5", "0.5"],
        ["2", "text 2", "2.0", "2.0", "0.0"],
    ]


def test_of_tags_each_wrong_word_is_a_mistake(tmp_path):
    head = heads.Tagging(("O", "B-PER", "I-PER"))
    rows = [
        {"tokens": ["Ann", "Lee", "ran"], "label": ["B-PER", "I-PER", "O"]},
        {"tokens": ["He", "ran"], "label": [None, "O"]},
    ]
    compared = {
        "target": [["B-PER", "I-PER", "O"], [None, "O"]],
        "predicted": [["B-PER", "O", "O"], ["B-PER", "B-PER"]],
        "probabilities": [[0.9, 0.5, 0.9], [0.99, 0.8]],
    }
    run = stored_runs.write(tmp_path, head, rows, compared)
    assert _errors(run) == [
        ["row", "text", "word", "right", "predicted", "probability"],
        ["1", "He ran", "ran", "O", "B-PER", "0.8"],
        ["0", "Ann Lee ran", "Lee", "I-PER", "O", "0.5"],
    ]


def test_of_several_classes_the_surest_wrong_decision_counts(tmp_path):
    head = heads.MultiLabel(("a", "b"))
    labels = [["a"], ["a", "b"], []]
    rows = [{"text": f"text {i}", "label": x} for i, x in enumerate(labels)]
    compared = {
        "target": [[1, 0], [1, 1], [0, 0]],
        "predicted": [[1, 1], [0, 0], [0, 0]],
        # In row 1 both are missed, `b` with 1 - 0.1.
        "probabilities": [[0.95, 0.6], [0.4, 0.1], [0.3, 0.2]],
    }
    run = stored_runs.write(tmp_path, head, rows, compared)
    assert _errors(run)[1:] == [
        ["1", "text 1", "a, b", "none", "0.9"],
        ["0", "text 0", "a", "a, b", "0.6"],
    ]


def test_a_class_without_rows_has_no_recall(tmp_path):
    rows = [{"text": "x", "label": ["a"]}]
    compared = {"target": [[1, 0]], "predicted": [[0, 1]]}
    head = heads.MultiLabel(("a", "b"))
    run = stored_runs.write(tmp_path, head, rows, compared)
    content = several_classes.several_classes_content(run_files.read_run(run))
    assert content.tables[1].rows == [
        ["a", 1, None, 0.0, 0.0],
        ["b", 0, 0.0, None, 0.0],
    ]


def test_of_choices_the_texts_are_named(tmp_path):
    rows = [{"text": "It is", "choices": ["good", "bad"], "label": 0}]
    compared = {"target": [0], "predicted": [1], "probabilities": [[0.2, 0.8]]}
    run = stored_runs.write(tmp_path, heads.Choice(), rows, compared)
    assert _errors(run) == [
        ["row", "text", "right", "predicted", "probability"],
        ["0", "It is", "good", "bad", "0.8"],
    ]


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\tx", "\r=1", "\n=1"],
)
def test_no_text_is_a_formula(tmp_path, text):
    path = tmp_path / "errors.csv"
    mistakes.write_mistakes(
        ReportTable("", ("text", "number"), [[text, -0.5]]), path
    )
    with path.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file))[1] == [f"'{text}", "-0.5"]


def test_other_texts_are_as_they_are(tmp_path):
    path, texts = tmp_path / "errors.csv", ['a "b", c', "1=1", "é\n漢", ""]
    mistakes.write_mistakes(
        ReportTable("", ("text",), [[t] for t in texts]), path
    )
    with path.open(encoding="utf-8", newline="") as file:
        assert [row[0] for row in csv.reader(file)][1:] == texts
