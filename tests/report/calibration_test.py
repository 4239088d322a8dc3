"""Expected calibration error, computed by hand."""

import numpy as np
import pytest

from tf_adapters.report.calibration import reliability


def test_the_error_is_the_mean_gap_of_the_bins_by_their_sizes():
    # Two bins: [0.6, 0.7, 0.8] with one right, [0.2] with none.
    found = reliability([1, 0, 0, 0], [0.6, 0.7, 0.8, 0.2], bins=2)
    assert found.counts.tolist() == [1, 3]
    np.testing.assert_allclose(found.probability, [0.2, 0.7])
    np.testing.assert_allclose(found.share, [0, 1 / 3])
    by_hand = (1 * 0.2 + 3 * (0.7 - 1 / 3)) / 4
    assert found.error == pytest.approx(by_hand)


def test_empty_bins_count_nothing():
    found = reliability([True, True], [0.05, 0.95], bins=10)
    assert found.counts.tolist() == [1, 1]
    assert found.error == pytest.approx((0.95 + 0.05) / 2)


def test_a_probability_at_an_edge_is_counted_once():
    found = reliability([1, 1, 0], [0.5, 1.0, 0.0], bins=2)
    assert found.counts.sum() == 3
    assert found.error == pytest.approx((2 * abs(0.25 - 0.5) + 0) / 3)


@pytest.mark.parametrize("right", [0, 1])
def test_all_may_be_right_or_wrong(right):
    found = reliability([right] * 3, [0.9, 0.9, 0.9])
    assert found.error == pytest.approx(abs(right - 0.9))


def test_means_are_those_of_all_predictions():
    found = reliability([1, 0, 0, 1], [0.6, 0.7, 0.8, 0.2], bins=2)
    assert found.means == pytest.approx([0.575, 0.5])
