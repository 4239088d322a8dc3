"""Compares fitted temperatures with exact solutions."""

import numpy as np
import pytest
import scipy.special

from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.heads.temperature import fit_temperature


def test_of_equal_rows_it_gives_the_share_that_is_right():
    # sigmoid(4 / T) = 3 / 4, so that T = 4 / log(3).
    logits = np.array([[4.0, 0.0]] * 4)
    found = fit_temperature(logits, [0, 0, 0, 1])
    assert found == pytest.approx(4 / np.log(3), abs=1e-3)


def test_it_undoes_what_logits_were_multiplied_by():
    generator = np.random.default_rng(0)
    logits = generator.normal(0, 2, (4000, 3))
    drawn = generator.random((4000, 1))
    shares = np.cumsum(scipy.special.softmax(logits, axis=1), axis=1)
    targets = np.argmax(shares > drawn, axis=1)
    plain = fit_temperature(logits, targets)
    assert plain == pytest.approx(1, abs=0.1)
    assert fit_temperature(5 * logits, targets) == pytest.approx(
        5 * plain, rel=1e-3
    )


def test_rows_that_are_all_right_fit_none(caplog):
    assert fit_temperature(np.eye(2), [0, 1]) == 1.0
    assert "no temperature can be fitted" in caplog.text


def test_logits_that_say_nothing_are_warned_of(caplog):
    assert fit_temperature(np.eye(2), [1, 0]) == pytest.approx(20, abs=0.1)
    assert "say almost nothing" in caplog.text


LOGITS = np.array([[2.0, 0.0], [0.0, 1.0]], "float32")


def test_probabilities_are_those_of_divided_logits():
    head = heads.Classification(("no", "yes"), temperature=2.0)
    expected = scipy.special.softmax(LOGITS / 2, axis=1)
    decoded = [list(r["probabilities"].values()) for r in head.decode(LOGITS)]
    compared = head.compare(LOGITS, [0, 1])
    answer = head.answer(LOGITS)
    for found in (
        decoded,
        compared["probabilities"],
        np.asarray(answer["probabilities"]),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert compared["predicted"].tolist() == [0, 1]


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_it_is_a_number_above_zero(value):
    with pytest.raises(UserError, match="`temperature`"):
        heads.Classification(("no", "yes"), temperature=value)


def test_a_head_that_predicts_in_its_own_way_stores_no_probabilities():
    class Own(heads.Classification):
        def predictions(self, outputs):
            return np.zeros(len(outputs), int)

    head = Own(("no", "yes"))
    assert not head.has_temperature
    assert set(head.compare(LOGITS, [0, 1])) == {"target", "predicted"}
