"""Compares intervals and p values with SciPy's and closed forms."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from tf_adapters.papers.studies.claims import comparison
from tf_adapters.papers.studies.claims import resampling
from tf_adapters.papers.studies.claims import statistics

RANDOM = np.random.default_rng(0)


def _pair(high, low, setting="", examples=""):
    high, low = map(np.asarray, (high, low))
    functions = resampling.mean(high), resampling.mean(low)
    return statistics.Pair(setting, examples, len(high), *functions)


def test_of_one_seed_the_error_is_scipys_and_that_of_the_mean():
    high, low = RANDOM.integers(2, size=(2, 150)).astype(float)
    found = statistics.bootstrap([_pair(high, low)], draws=4000)
    theirs = stats.bootstrap(
        (high, low),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        paired=True,
        n_resamples=4000,
        method="percentile",
        rng=1,
    )
    assert found.difference == pytest.approx(np.mean(high - low), abs=1e-12)
    assert found.error == pytest.approx(theirs.standard_error, rel=0.04)
    closed = stats.ttest_rel(high, low)
    assert found.p == pytest.approx(closed.pvalue, rel=0.15)
    expected = closed.confidence_interval()
    np.testing.assert_allclose(found.interval(), expected, atol=0.005)
    np.testing.assert_allclose(
        found.interval(), theirs.confidence_interval, atol=0.012
    )
    assert (found.seeds, found.pairs, found.examples) == (1, 1, 150)


def test_where_examples_do_not_vary_seeds_are_a_t_test():
    differences = [0.02, 0.05, 0.03, 0.07]
    pairs = [
        _pair([0.5 + d] * 20, [0.5] * 20, "task", "set") for d in differences
    ]
    found = statistics.bootstrap(pairs)
    closed = stats.ttest_1samp(differences, 0)
    assert found.p == pytest.approx(closed.pvalue, rel=1e-9)
    np.testing.assert_allclose(
        found.interval(), closed.confidence_interval(), rtol=1e-9
    )
    np.testing.assert_allclose(
        found.interval(0.99), closed.confidence_interval(0.99), rtol=1e-9
    )


def test_settings_are_strata_with_a_seed_variance_each():
    values = {"a": [0.1, 0.2, 0.3], "b": [0.4, 0.8]}
    pairs = [
        _pair([d] * 5, [0.0] * 5, setting, setting)
        for setting, some in values.items()
        for d in some
    ]
    found = statistics.bootstrap(pairs)
    assert found.difference == pytest.approx((0.2 + 0.6) / 2)
    parts = [np.var(some, ddof=1) / len(some) / 4 for some in values.values()]
    assert found.error == pytest.approx(np.sqrt(sum(parts)))
    # Welch and Satterthwaite's.
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 2 + parts[1] ** 2 / 1)
    assert found.freedom == pytest.approx(freedom)
    assert found.seeds == 2 and found.examples == 10


def test_languages_of_the_same_runs_are_one_sample_of_seeds():
    # Rows are languages, columns seeds: a seed moves all of its languages.
    values = np.array([[0.1, 0.5, 0.3], [0.2, 0.6, 0.5], [0.0, 0.4, 0.1]])
    pairs = [
        dataclasses.replace(
            _pair([value] * 5, [0.0] * 5, language, language),
            group="task",
            sample=seed,
        )
        for language, row in enumerate(values)
        for seed, value in enumerate(row)
    ]
    found = statistics.bootstrap(pairs)
    closed = stats.ttest_1samp(values.mean(0), 0)
    assert found.p == pytest.approx(closed.pvalue, rel=1e-9)
    np.testing.assert_allclose(
        found.interval(), closed.confidence_interval(), rtol=1e-9
    )


def test_a_set_of_examples_is_drawn_alike_for_all_its_pairs():
    values = RANDOM.normal(size=80)
    # The second seed's differences undo the first one's, example by example.
    pairs = [
        _pair(values, np.zeros(80), "task", "set"),
        _pair(-values, np.zeros(80), "task", "set"),
    ]
    counts = np.ones((1, 80), int)
    mean = pairs[0].differences(counts)[0]
    found = statistics.bootstrap(pairs)
    assert found.error == pytest.approx(abs(mean), rel=1e-9)  # Of seeds alone.
    apart = [
        _pair(values, np.zeros(80), "task", "one"),
        _pair(-values, np.zeros(80), "task", "other"),
    ]
    assert statistics.bootstrap(apart).error > 1.2 * found.error


def test_no_false_alarm_by_three_seeds_of_one_sign():
    """A bootstrap that also draws seeds would be certain here."""
    base = np.zeros(400)
    pairs = [
        _pair(base + RANDOM.normal(shift, 0.01, 400), base, "task", "set")
        for shift in (0.01, 0.02, 0.06)
    ]
    found = statistics.bootstrap(pairs)
    assert found.freedom < 2.5 and found.p > 0.1
    low, high = found.interval()
    assert low < 0 < high


def test_equal_sides_do_not_differ():
    ones = np.ones(10)
    found = statistics.bootstrap([_pair(ones, ones)])
    assert (found.difference, found.error, found.p) == (0.0, 0.0, 1.0)
    assert found.interval() == (0.0, 0.0)


@pytest.mark.parametrize(("examples", "seeds"), [(1, 1), (4, 1), (2, 3)])
def test_no_variance_between_examples_is_no_certainty(examples, seeds):
    pair = _pair(np.ones(examples), np.full(examples, 0.9), "task", "set")
    found = statistics.bootstrap([pair] * seeds)
    assert found.difference == pytest.approx(0.1)
    assert np.isnan(found.error)
    assert found.p == 2.0 ** (1 - max(seeds, examples))
    assert (found.examples, found.seeds) == (examples, seeds)


def test_it_is_repeated_by_its_seed():
    high, low = RANDOM.integers(2, size=(2, 50))
    first, again, other = (
        statistics.bootstrap([_pair(high, low)], draws=100, seed=seed)
        for seed in (0, 0, 1)
    )
    assert first == again and first != other


def test_draws_are_the_same_in_parts(monkeypatch):
    high, low = RANDOM.integers(2, size=(2, 40))
    whole = statistics.bootstrap([_pair(high, low)], draws=200)
    monkeypatch.setattr(statistics, "_AT_ONCE", 40 * 7)
    parts = statistics.bootstrap([_pair(high, low)], draws=200)
    assert parts.error == pytest.approx(whole.error, rel=1e-12)


def _compare(values, settings=None):
    settings = settings or [None] * len(values)
    return statistics.compare_pairs(
        [
            statistics.Difference(value, setting)
            for value, setting in zip(values, settings, strict=True)
        ]
    )


@pytest.mark.parametrize("count", [2, 3, 30])
def test_pairs_are_scipys_t_test(count):
    values = RANDOM.normal(0.5, size=count)
    found = _compare(values)
    theirs = stats.ttest_1samp(values, 0)
    assert found.p == pytest.approx(theirs.pvalue)
    assert found.difference == pytest.approx(values.mean())
    np.testing.assert_allclose(
        found.interval(), theirs.confidence_interval(), rtol=1e-9
    )


def test_of_one_pair_nothing_is_known():
    found = _compare([0.5])
    assert (found.difference, found.p) == (0.5, 1.0)
    assert np.isnan(found.interval()).all()


def test_equal_differences_do_not_say_how_much_they_vary():
    found = _compare([0.02, 0.02, 0.02])
    assert (found.p, found.pairs) == (0.25, 3)
    assert np.isnan(found.interval()).all()
    assert _compare([0.0, 0.0]).p == 1.0


def test_of_pairs_too_settings_are_strata():
    """Tasks differ by far, but the claim is about these tasks."""
    values, settings = [0.1, 0.2, 0.3, 1.4, 1.8], ["a"] * 3 + ["b"] * 2
    found = _compare(values, settings)
    assert found.difference == pytest.approx((0.2 + 1.6) / 2)
    parts = [0.01 / 3 / 4, 0.08 / 2 / 4]
    assert found.error == pytest.approx(np.sqrt(sum(parts)))
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 2 + parts[1] ** 2 / 1)
    assert found.freedom == pytest.approx(freedom)


def test_a_setting_with_one_seed_makes_all_pairs_one_sample():
    values = [0.1, 0.2, 0.3, 1.4]
    found = _compare(values, ["a", "a", "a", "b"])
    assert found == _compare(values)


def test_a_missing_run_is_no_variation_between_seeds():
    """Two sizes and one baseline; a run of the second size is missing."""
    gains = {("small", 0): 0.049, ("small", 1): 0.05, ("small", 2): 0.051}
    gains |= {("large", 0): 0.049, ("large", 1): 0.05}
    found = statistics.compare_pairs(
        [
            statistics.Difference(gain, size, "runs", seed)
            for (size, seed), gain in gains.items()
        ]
    )
    # Deviations from the size's mean, weighted: 1/6 and 1/4 of each.
    sums = [-0.001 / 6 - 0.0005 / 4, 0.0005 / 4, 0.001 / 6]
    error = np.sqrt(3 / 2 * np.sum(np.square(sums)))
    assert found.error == pytest.approx(error)
    assert found.p < 0.001


def test_differences_that_vary_together_are_one_sample():
    found = statistics.compare_pairs(
        [statistics.Difference(gain, "task", "runs", ()) for gain in (1, 2, 3)]
    )
    assert found.is_alone and (found.difference, found.p) == (2.0, 1.0)


def test_settings_without_variation_have_no_interval():
    found = _compare([0.1, 0.1, 0.3, 0.3], ["a", "a", "b", "b"])
    assert found.p == 0.125 and np.isnan(found.interval()).all()


def test_tests_against_a_margin_are_scipys():
    values = RANDOM.normal(0.2, size=12)
    found = _compare(values)
    less, greater = (
        stats.ttest_1samp(values, limit, alternative=side).pvalue
        for limit, side in ((1.0, "less"), (-1.0, "greater"))
    )
    assert found.p_below(1.0) == pytest.approx(less)
    assert found.p_above(-1.0) == pytest.approx(greater)
    assert found.p_within(1.0) == pytest.approx(max(less, greater))


def test_without_an_interval_nothing_is_within_a_margin():
    assert _compare([0.0, 0.0, 0.0]).p_within(1.0) == 1.0
    ones = np.ones(10)
    assert statistics.bootstrap([_pair(ones, ones)]).p_within(1.0) == 1.0


def test_holm_is_its_definition():
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1, and never falling.
    assert comparison.holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx(
        [0.06, 0.04, 0.06, 0.06]
    )
    assert comparison.holm([0.5, 0.6]) == [1.0, 1.0]
    assert comparison.holm([0.02]) == [0.02]
    assert comparison.holm([]) == []


def test_settings_that_contradict_each_other_decide_nothing():
    settings = ["a"] * 3 + ["b"] * 3
    assert _compare([0.3] * 3 + [-0.1] * 3, settings).p == 1
    assert _compare([0.3] * 3 + [0.1] * 3, settings).p == 2**-5
