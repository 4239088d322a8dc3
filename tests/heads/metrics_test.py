"""Compares metrics with their formulas in NumPy."""

import warnings

import numpy as np
import pytest

from tf_adapters.heads import metrics

LABELS = np.array([0, 0, 1, 1, 1, 2, 2, 0, 1, 2])
PREDICTIONS = np.array([0, 1, 1, 1, 0, 2, 1, 0, 1, 0])
BINARY_LABELS = np.array([1, 1, 1, 0, 0, 0, 0, 1])
BINARY_PREDICTIONS = np.array([1, 0, 1, 0, 1, 0, 1, 1])


def _f1(labels, predictions, positive):
    true = np.sum((labels == positive) & (predictions == positive))
    return (
        2
        * true
        / (np.sum(labels == positive) + np.sum(predictions == positive))
    )


def _ranks(values):  # Ties share the mean of their ranks.
    return np.array(
        [np.mean(np.flatnonzero(np.sort(values) == v)) for v in values]
    )


def _pearson(a, b):
    a, b = a - a.mean(), b - b.mean()
    return (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())


def test_accuracy_and_f1_follow_their_formulas():
    scores = metrics.compute_metrics(
        ("accuracy", "macro_f1", "micro_f1"), LABELS, PREDICTIONS
    )
    per_class = [_f1(LABELS, PREDICTIONS, c) for c in range(3)]
    assert scores["accuracy"] == pytest.approx(0.6)
    assert scores["micro_f1"] == pytest.approx(0.6)
    assert scores["macro_f1"] == pytest.approx(np.mean(per_class))
    assert scores["macro_f1"] != pytest.approx(0.6, abs=0.01)


def test_f1_is_of_class_one():
    (score,) = metrics.compute_metrics(
        ["f1"], BINARY_LABELS, BINARY_PREDICTIONS
    ).values()
    assert score == pytest.approx(_f1(BINARY_LABELS, BINARY_PREDICTIONS, 1))
    assert score != pytest.approx(_f1(BINARY_LABELS, BINARY_PREDICTIONS, 0))


def test_matthews_is_pearson_on_two_classes():
    score = metrics.compute_metrics(
        ["matthews"], BINARY_LABELS, BINARY_PREDICTIONS
    )
    expected = _pearson(BINARY_LABELS, BINARY_PREDICTIONS)
    assert score["matthews"] == pytest.approx(expected)
    assert abs(expected) > 0.2


def test_correlations_follow_their_formulas():
    rng = np.random.default_rng(0)
    labels = np.round(rng.uniform(0, 5, 40) * 4) / 4  # With ties, as STS-B.
    predictions = np.exp(labels) + rng.normal(size=40)
    scores = metrics.compute_metrics(
        ("spearman", "pearson"), labels, predictions
    )
    expected = _pearson(_ranks(labels), _ranks(predictions))
    assert scores["spearman"] == pytest.approx(expected)
    assert scores["pearson"] == pytest.approx(_pearson(labels, predictions))
    assert scores["spearman"] - scores["pearson"] > 0.05


@pytest.mark.parametrize("name", ["f1", "matthews", "pearson", "spearman"])
def test_a_constant_prediction_scores_zero(name):
    labels = np.array([0, 1, 1, 0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = metrics.compute_metrics([name], labels, np.zeros(5, int))
    assert scores == {name: 0.0}


@pytest.mark.parametrize("name", list(metrics.METRICS))
def test_a_perfect_prediction_scores_one(name):
    labels = np.array([0, 1, 1, 0, 1])
    assert metrics.compute_metrics([name], labels, labels)[
        name
    ] == pytest.approx(1)


def test_the_whole_set_counts_and_not_the_mean_over_batches():
    whole = metrics.compute_metrics(["macro_f1"], LABELS, PREDICTIONS)[
        "macro_f1"
    ]
    batches = [  # One class each, as in a file that is sorted by class.
        metrics.compute_metrics(
            ["macro_f1"], LABELS[LABELS == c], PREDICTIONS[LABELS == c]
        )
        for c in range(3)
    ]
    assert abs(np.mean([b["macro_f1"] for b in batches]) - whole) > 0.05


def test_results_are_python_floats():
    scores = metrics.compute_metrics(metrics.METRICS, [0, 1, 1], [0, 1, 0])
    assert list(scores) == list(metrics.METRICS)
    assert {type(score) for score in scores.values()} == {float}


@pytest.mark.parametrize(
    ("labels", "predictions", "message"),
    [
        ([], [], "non-empty"),
        ([1, 0], [1], r"predictions of shape \(1,\)"),
        ([1.0, 0.0], [[1.0], [0.0]], r"predictions of shape \(2, 1\)"),
        ([1.0, 2.0, 3.0], [0.1, np.nan, np.inf], "nan for example 1, and 1"),
        ([1, 0], ["a", "b"], "Metrics need numbers"),
    ],
)
def test_unusable_arrays_are_refused(labels, predictions, message):
    with pytest.raises(ValueError, match=message):
        metrics.compute_metrics(["accuracy"], labels, predictions)


def test_unknown_metric_lists_the_known():
    with pytest.raises(ValueError, match="`acuracy`. Did you mean `accuracy`"):
        metrics.compute_metrics(["acuracy"], [0, 1], [0, 1])


def test_adjacent_words_with_a_plain_tag_form_an_entity():
    labels = [["PER", "PER", "O", "ORG"], ["B-LOC", "I-LOC", "B-LOC", "O"]]
    predicted = [["PER", "PER", "O", "O"], ["B-LOC", "I-LOC", "I-LOC", "O"]]
    names = ("entity_f1", "entity_precision", "entity_recall")
    found = metrics.compute_tagging(names, labels, predicted)
    # Right: PER. Predicted: PER and one LOC. There: PER, ORG and two LOC.
    # (seqeval alone would find no ORG.)
    assert list(found.values()) == pytest.approx([1 / 3, 1 / 2, 1 / 4])


@pytest.mark.parametrize(
    ("there", "predicted", "score"),
    [
        ("B-PER M-PER E-PER", "B-PER M-PER O", 0.0),
        ("B-PER I-PER L-PER", "B-PER I-PER L-PER", 1.0),
        ("U-LOC O U-LOC", "U-LOC O O", 2 / 3),
        ("B-X L-X B-X L-X O", "O O B-X L-X O", 2 / 3),
        ("U-X U-X O U-Y B-Y L-Y", "U-X U-X O O B-Y L-Y", 6 / 7),
        ("B_PER I_PER O", "B_PER I_PER O", 1.0),
        ("BUS BUS O", "BUS BUS O", 1.0),
        ("ORG O O", "O O O", 0.0),
    ],
)
def test_entities_of_other_schemes(there, predicted, score):
    rows = [there.split()], [predicted.split()]
    found = metrics.compute_tagging(("entity_f1",), *rows)
    assert found["entity_f1"] == pytest.approx(score)
    (tags,) = metrics.entity_tags(rows[0])
    known = all(tag[0] in "BIESO" for tag in rows[0][0])
    is_plain = there in ("BUS BUS O", "ORG O O")
    assert (tags == rows[0][0]) is (known and not is_plain)
