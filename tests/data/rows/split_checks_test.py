"""Tests the warnings for splits that share texts or differ in classes."""

import logging

import pytest

from tf_adapters import tasks
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.rows import split_checks


def _warnings(caplog, task, **rows):
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        split_checks.warn_of_overlap(rows, tasks.get(task))
    return [record.getMessage() for record in caplog.records]


def _pair(first, second, label=0):
    return {"sentence1": first, "sentence2": second, "label": label}


def test_texts_in_two_splits_are_counted(caplog):
    train = [_pair("a", "b"), _pair("c", "d")]
    test = [_pair("c", "d", 1), _pair("a", "d"), _pair("a", "b")]
    labels = {"train": [*train, _pair("x", "y", 1)]}
    (message,) = _warnings(caplog, "rte", **labels, test=test)
    assert "Task `rte`: 2 of 3 test rows have the same texts as a tr" in message
    assert "('c', 'd')" in message
    # The texts of a pair are separate.
    assert not _warnings(caplog, "rte", **labels, test=[_pair("b", "a")])


def test_classes_that_never_train_are_counted(caplog):
    train = [_pair("a", "b"), _pair("c", "d")]
    validation = [_pair("e", "f", 1), _pair("g", "h", 1), _pair("i", "j")]
    (message,) = _warnings(caplog, "rte", train=train, validation=validation)
    assert "1 classes occur in validation but never in training" in message
    assert "`not_entailment` (2)" in message
    unlabeled = [_pair("e", "f", None)]
    assert not _warnings(caplog, "rte", train=train, validation=unlabeled)


def test_words_and_their_tags(caplog):
    train = [{"tokens": ["a", "b"], "label": [0, 1]}]
    test = [
        {"tokens": ["a", "b"], "label": [0, 2]},
        {"tokens": ["a b"], "label": [IGNORED]},
    ]
    found = _warnings(caplog, "wikiann", train=train, test=test)
    assert len(found) == 2
    assert "1 of 2 test rows" in found[0] and "1 classes" in found[1]


@pytest.mark.parametrize("task", ["stsb", "winogrande", "squad"])
def test_other_labels_are_no_classes(caplog, task):
    fields = tasks.get(task).text_fields
    label = [{"text": "a", "answer_start": 0}] if task == "squad" else 1
    train = [{**dict.fromkeys(fields, "a"), "label": 0}]
    test = [{**dict.fromkeys(fields, "b"), "label": label}]
    assert not _warnings(caplog, task, train=train, test=test)
