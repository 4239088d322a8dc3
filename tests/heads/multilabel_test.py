"""Compares labels, loss and metrics of the multi-label head."""

import json

import numpy as np
import pytest
import scipy.special
from sklearn import metrics as sklearn_metrics

from tf_adapters import heads
from tf_adapters.data.rows import list_fields
from tf_adapters.tasks.task import Task

LABELS = ("sad", "angry", "glad")
HEAD = heads.MultiLabel(LABELS)
RANDOM = np.random.default_rng(0)
LOGITS = RANDOM.normal(size=(20, 3)).astype("float32")
TARGETS = (RANDOM.uniform(size=(20, 3)) < 0.4).astype("float32")


def test_the_loss_is_the_mean_of_binary_cross_entropies():
    p = scipy.special.expit(LOGITS.astype("float64"))
    expected = -(TARGETS * np.log(p) + (1 - TARGETS) * np.log(1 - p)).mean(1)
    np.testing.assert_allclose(
        HEAD.loss(TARGETS, LOGITS), expected, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_f1_is_scikit_learns_at_one_half(average):
    expected = sklearn_metrics.f1_score(TARGETS, LOGITS >= 0, average=average)
    name = f"{average}_f1"
    found = HEAD.evaluate([name], LOGITS, TARGETS)
    assert 0.1 < found[name] == pytest.approx(expected)


def test_a_higher_threshold_predicts_fewer_classes():
    strict = heads.MultiLabel(LABELS, threshold=0.8)
    found = strict.predictions(LOGITS)
    np.testing.assert_array_equal(found, LOGITS >= np.log(4))
    assert found.sum() < HEAD.predictions(LOGITS).sum()


def test_targets_decode_and_answer():
    rows = [{"label": [0, 2]}, {"label": []}]
    np.testing.assert_array_equal(HEAD.targets(rows), [[1, 0, 1], [0, 0, 0]])
    decoded = HEAD.decode([[3.0, -3.0, 0.1], [-1.0, -1.0, -1.0]])
    assert decoded[0]["labels"] == ["sad", "glad"]
    assert decoded[1]["labels"] == []
    assert decoded[0]["probabilities"]["angry"] == pytest.approx(0.047426)
    answer = HEAD.answer(LOGITS)
    np.testing.assert_array_equal(answer["is_predicted"], LOGITS >= 0)
    with pytest.raises(ValueError, match="Row 1 .*Received: None"):
        HEAD.targets([{"label": []}, {"label": None}])
    np.testing.assert_array_equal(
        HEAD.targets([{"label": np.array([])}]), [[0, 0, 0]]
    )


def test_class_ids_are_no_labels_of_fit():
    HEAD.check_labels(TARGETS)
    HEAD.check_labels(2 * TARGETS - 1)
    with pytest.raises(ValueError, match="Received: 2 in row 1"):
        HEAD.check_labels(np.array([[0, 1, 0], [0, 1, 2]]))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["glad", "sad"], [0, 2]),
        ('["angry"]', [1]),
        ([], []),
        (None, None),
        ([2, "sad"], [0, 2]),
    ],
)
def test_labels_as_files_have_them(value, expected):
    assert list_fields.parse_classes(value, LABELS) == expected


@pytest.mark.parametrize("value", ["glad", ["merry"], 3])
def test_other_labels_are_refused(value):
    with pytest.raises(ValueError, match="list|unknown"):
        list_fields.parse_classes(value, LABELS)


@pytest.mark.parametrize("value", [[1, 0], [0, 0], ["1", "1"], "[1, 0]"])
def test_a_zero_or_one_for_each_of_two_classes_is_refused(value):
    with pytest.raises(ValueError, match="not a 0 or 1 for each class"):
        list_fields.parse_classes(value, ("sad", "glad"))
    assert list_fields.parse_classes([0, 1], ("sad", "glad")) == [0, 1]
    assert list_fields.parse_classes([1, 0], ("0", "1")) == [0, 1]


def test_config_round_trip():
    head = heads.MultiLabel(LABELS, threshold=0.3, hidden_layer="tanh")
    assert heads.from_config(json.loads(json.dumps(heads.to_config(head)))) == (
        head
    )


def test_a_task_of_several_classes_a_text():
    task = Task(
        name="feelings",
        source="",
        text_fields=("text",),
        labels=LABELS,
        splits={"train": "train", "validation": "validation"},
        head="multilabel",
        metrics=("micro_f1",),
        cite="here",
    )
    assert heads.for_task(task, threshold=0.4).threshold == 0.4
    with pytest.raises(ValueError, match="threshold"):
        heads.for_task(task, threshold=2.0)
