"""What analyses compute, against independent computations."""

import numpy as np
import pandas as pd
import pytest

from tf_adapters.analysis import curves
from tf_adapters.analysis import gates
from tf_adapters.analysis import gradient_norms
from tf_adapters.analysis import loss_landscape
from tf_adapters.analysis import shift_directions
from tf_adapters.analysis import shift_words
from tf_adapters.analysis import similarity
from tf_adapters.analysis import span_ablation
from tf_adapters.analysis import stability
from tf_adapters.analysis import token_shift
from tf_adapters.analysis import trade_off
from tf_adapters.common.errors import UserError

GENERATOR = np.random.default_rng(0)


def test_similarity_is_numpys_on_the_whole_matrices():
    one = GENERATOR.normal(size=(23, 5))
    other = one[:, :3] + GENERATOR.normal(size=(23, 3))

    def cosines(vectors):
        unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
        return (unit @ unit.T)[np.triu_indices(len(unit), 1)]

    expected = np.corrcoef(cosines(one), cosines(other))[0, 1]
    assert 0.1 < expected < 0.9
    for rows in (1, 7, 1000):
        found = similarity.similarity(one, other, rows)
        assert found == pytest.approx(expected, abs=1e-12)


def test_similarity_does_not_see_a_rotation():
    vectors = GENERATOR.normal(size=(30, 4))
    rotation, _ = np.linalg.qr(GENERATOR.normal(size=(4, 4)))
    found = similarity.similarity(vectors, 3 * vectors @ rotation)
    assert found == pytest.approx(1)


def test_drawn_tokens_are_never_special_and_the_same_each_time():
    lengths = [4, 6, 3]
    drawn = similarity.drawn_tokens(lengths, lambda t, p: p == 0, 5)
    assert len(drawn) == len(set(drawn)) == 5
    assert all(0 < p < lengths[t] for t, p in drawn)
    assert drawn == similarity.drawn_tokens(lengths, lambda t, p: p == 0, 5)
    assert len(similarity.drawn_tokens(lengths, lambda t, p: p == 0, 99)) == 10


def test_every_span_is_left_out_once():
    effects = np.array([0.01, 0.02, 0.04])
    asked = []

    def evaluate(blocks):
        asked.append(blocks)
        return 0.8 - effects[list(blocks)].sum()

    values = span_ablation.ablate(3, evaluate)
    assert asked == [(0,), (0, 1), (0, 1, 2), (1,), (1, 2), (2,)]
    found = span_ablation.changes(values, 0.8)
    expected = -np.array(
        [[0.01, 0.03, 0.07], [np.nan, 0.02, 0.06], [np.nan, np.nan, 0.04]]
    )
    np.testing.assert_allclose(found, 100 * expected / 0.8)


def test_the_landscape_of_a_quadratic():
    before = {"a": np.zeros(3), "b": np.zeros((2, 2))}
    after = {"a": np.full(3, 2.0), "b": np.full((2, 2), -1.0)}
    # The squared distance from `after`: 16 (alpha - 1)^2.
    steps = loss_landscape.alphas(20)
    assert {0, 1} < set(steps) and len(steps) == 22
    losses = loss_landscape.line(
        before,
        after,
        lambda w: sum(np.sum((w[n] - after[n]) ** 2) for n in w),
        steps,
    )
    np.testing.assert_allclose(losses, 16 * (steps - 1) ** 2, atol=1e-12)
    assert loss_landscape.norm(after) == 4
    fine = loss_landscape.alphas(4001)
    found = loss_landscape.width(fine, 16 * (fine - 1) ** 2)
    assert found == pytest.approx(2 * np.sqrt(0.1 / 16), abs=1e-3)
    # A valley that does not end in sight ends with what was looked at.
    assert loss_landscape.width(fine, 0 * fine) == 4


def test_mean_shift_leaves_padding_out():
    alphas = [np.array([[[1.0], [-3.0], [100.0]]]), np.full((1, 3, 1), -2.0)]
    sums, count = token_shift.means(alphas, [[1, 1, 0]])
    np.testing.assert_allclose(sums / count, [2, 2])


def test_boxes_are_numpys_quantiles():
    values = GENERATOR.normal(size=7)
    runs = pd.DataFrame(
        {
            "task": "cola",
            "panel": "",
            "method": "full",
            "rate": 1e-5,
            "validation": values,
        }
    )
    (row,) = stability.boxes(runs, "rate", "validation").to_dict("records")
    expected = np.quantile(values, stability.QUANTILES)
    found = [row[k] for k in ("min", "q1", "median", "q3", "max")]
    np.testing.assert_allclose(found, expected)
    assert row["runs"] == 7
    assert row["quartile_range"] == pytest.approx(expected[3] - expected[1])


RUNS = pd.DataFrame(
    [
        ("cola", "full", None, 100, 0.5),
        ("rte", "full", None, 100, 0.7),
        ("cola", "houlsby", 8, 10, 0.4),
        ("cola", "houlsby", 8, 10, 0.5),
        ("rte", "houlsby", 8, 10, 0.71),
        ("cola", "houlsby", 64, 40, 0.6),
    ],
    columns=["task", "method", "method.units", "trained_weights", "test"],
)


def test_trade_off_means_over_seeds():
    found = trade_off.means(RUNS, ["method.units"], "test")
    rows = {(r.task, r.trained_weights): r for r in found.itertuples()}
    row = rows["cola", 10]
    assert (row.mean, row.runs) == (pytest.approx(0.45), 2)
    assert row.error == pytest.approx(0.05)
    assert np.isnan(rows["rte", 10].error) and len(rows) == 5


def test_percentiles_are_of_differences_over_tasks():
    means = trade_off.means(RUNS, ["method.units"], "test")
    found = trade_off.percentiles(means, "full").set_index("trained_weights")
    # CoLA is 5 points lower, RTE one higher.
    expected = np.percentile([-5, 1], (20, 50, 80))
    np.testing.assert_allclose(found.loc[10, ["p20", "p50", "p80"]], expected)
    assert found.loc[40, "p50"] == pytest.approx(10)


def test_shares_of_gates():
    report = {
        "gates": 10,
        "gates_open_expected": 0.4,
        "gates_open_expected_at_start": 0.83,
        "gates_open_sampled": 0.5,
        "gates_open_sampled_at_start": 0.8,
        "gates_exactly_zero": 0.7,
    }
    found = dict((n, v) for n, *v in gates.shares({"method_report": report}))
    assert found["expected"] == [0.4, 0.83]
    assert found["not exactly zero"] == [pytest.approx(0.3), 1.0]
    with pytest.raises(UserError, match="has no gates"):
        list(gates.shares({"task": "rte", "method": "full"}))


def test_norms_of_a_part_are_those_of_one_long_vector():
    norms = {
        "block_0_after_ffn/delta/down_kernel": 3.0,
        "block_0_after_ffn/delta/up_bias": 4.0,
        "transformer_layer_11/self_attention/query/kernel": 2.0,
        "head/kernel": 1.0,
        "pooled_dense/kernel": 6.0,
        "embeddings_layer_norm/gamma": 7.0,
    }
    assert gradient_norms.by_part(norms) == {
        "block 1": 5.0,
        "block 12": 2.0,
        "head": 1.0,
        "pooler": 6.0,
        "embeddings": 7.0,
    }


def test_curves_are_means_over_runs():
    rows = [
        ("a", "full", 0, 2, "loss", 1.0),
        ("b", "full", 0, 2, "loss", 3.0),
        ("a", "full", 0, 4, "loss", 0.5),
        ("c", "houlsby", 0, 2, "loss", 7.0),
    ]
    found = curves.spread(pd.DataFrame(rows, columns=curves.COLUMNS))
    values = {(r.method, r.step): r for r in found.itertuples()}
    first = values["full", 2]
    assert (first.mean, first.min, first.max, first.count) == (2, 1, 3, 2)
    assert values["full", 4].mean == 0.5 and values["houlsby", 2].mean == 7


def test_the_plane_of_shifts_is_that_of_numpys_singular_vectors():
    before, after = GENERATOR.normal(size=(2, 9, 5))
    found = np.concatenate(shift_directions.plane(before, after))
    joined = np.concatenate([before, after])
    centred = joined - joined.mean(axis=0)
    *_, axes = np.linalg.svd(centred, full_matrices=False)
    expected = centred @ axes[:2].T
    # Either direction of a component is one.
    signs = np.sign(np.sum(found * expected, axis=0))
    np.testing.assert_allclose(found, signs * expected, atol=1e-9)


def test_shifts_of_words_are_means_over_places_and_blocks():
    alphas = np.array([[1.0, -2.0, 3.0], [0.0, 4.0, -5.0]])
    found = shift_words.mean_shifts([7, 8, 7], alphas, lengths=[2.0, 10.0])
    # Word 7: places 0 and 2; a block's weight times the length of its vector.
    first = np.mean([(1 * 2 + 0 * 10) / 2, (3 * 2 + 5 * 10) / 2])
    assert found == {7: (first, 2), 8: ((2 * 2 + 4 * 10) / 2, 1)}
