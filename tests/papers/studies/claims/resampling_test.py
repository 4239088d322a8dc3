"""Compares metrics of many samples with those of each sample."""

import numpy as np
import pytest

from tf_adapters import heads
from tf_adapters.common.errors import DataError
from tf_adapters.heads import metrics
from tf_adapters.heads import span_metrics
from tf_adapters.papers.studies.claims import resampling
from tf_adapters.papers.studies.claims import sampled_metrics
from tf_adapters.runs import predictions

RANDOM = np.random.default_rng(0)
COUNT = 12
TAGS = ("O", "B-X", "I-X", "B-Y")


def _classes(number):
    target = RANDOM.integers(number, size=COUNT)
    wrong = RANDOM.integers(number, size=COUNT)
    predicted = np.where(RANDOM.random(COUNT) < 0.5, target, wrong)
    return {"target": target.tolist(), "predicted": predicted.tolist()}


def _numbers():
    target = RANDOM.integers(4, size=COUNT) / 2.0  # With ties.
    predicted = (target + RANDOM.normal(size=COUNT)).round(1)
    return {"target": target.tolist(), "predicted": predicted.tolist()}


def _tags():
    def row(length, gap):
        tags = RANDOM.choice(TAGS, length).tolist()
        return [None if i == gap else tag for i, tag in enumerate(tags)]

    lengths = RANDOM.integers(3, 7, COUNT)
    target = [row(length, RANDOM.integers(9)) for length in lengths]
    predicted = [
        [t if t and RANDOM.random() < 0.6 else "B-X" for t in row]
        for row in target
    ]
    return {"target": target, "predicted": predicted}


def _labels():
    target, predicted = RANDOM.integers(2, size=(2, COUNT, 3))
    return {"target": target.tolist(), "predicted": predicted.tolist()}


ANSWERS = {
    "target": [["the big cat", "a cat"], ["dog"], ["red"]] * 4,
    "predicted": ["cat", "Dog.", "blue or red", "big dog", "", "red"] * 2,
}
CASES = [
    ("classification", name, compared)
    for name in metrics.CLASSIFICATION_METRICS
    for compared in (_classes(2), _classes(3))
    if name != "f1" or 2 not in compared["target"]
]
CASES += [("regression", name, _numbers()) for name in ("pearson", "spearman")]
CASES += [("tagging", name, _tags()) for name in metrics.TAGGING_METRICS]
CASES += [("span", name, ANSWERS) for name in span_metrics.SPAN_METRICS]
CASES += [("multilabel", n, _labels()) for n in ("micro_f1", "macro_f1")]
CASES += [("choice", "accuracy", _classes(4))]


def _draws():
    """Samples, one of them of few examples, so that classes lack."""
    draws = RANDOM.multinomial(COUNT, [1 / COUNT] * COUNT, size=30)
    few = np.zeros((COUNT, COUNT), int)
    np.fill_diagonal(few, 3)
    return np.concatenate([draws, few, few + np.roll(few, 1, axis=1)])


@pytest.mark.parametrize(("kind", "name", "compared"), CASES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_samples_have_the_metrics_of_their_rows(kind, name, compared):
    head, draws = heads.HEADS[kind], _draws()
    if name in ("pearson", "spearman"):
        draws = draws[(draws > 0).sum(axis=1) > 1]  # As rows they are refused.
    found = sampled_metrics.sampled_metric_of_head(head, name, compared)(draws)
    expected = resampling.by_repetition(
        lambda some: head.score([name], some)[name], compared
    )(draws)
    assert found.shape == expected.shape
    assert np.ptp(expected) > 0
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


class _Reversed(heads.Classification):
    """A head that defines a metric differently."""

    @classmethod
    def score(cls, names, compared):
        return {
            name: 1 - v for name, v in super().score(names, compared).items()
        }


def test_a_head_with_a_score_of_its_own_is_asked_for_it():
    compared, draws = _classes(3), _draws()
    usual, own = (
        sampled_metrics.sampled_metric_of_head(head, "accuracy", compared)(
            draws
        )
        for head in (heads.Classification, _Reversed)
    )
    assert np.ptp(usual) > 0
    np.testing.assert_allclose(own, 1 - usual)


def test_predictions_of_another_head_are_damaged(tmp_path):
    path = tmp_path / "test.json.gz"
    compared = {"target": ["a", "b"], "predicted": [0, 1]}
    stored = predictions.Predictions("regression", compared, path)
    with pytest.raises(DataError, match=r"test\.json\.gz is damaged: "):
        sampled_metrics.sampled_metric(stored, "pearson")


def test_a_sample_of_one_value_has_no_correlation():
    target, predicted = [0.1, 0.2, 0.3], [7.1, 7.1, 8.0]
    for function in (resampling.pearson, resampling.spearman):
        values = function(target, predicted)(np.array([[3, 3, 0], [1, 0, 1]]))
        np.testing.assert_allclose(values, [0, 1], atol=1e-12)
