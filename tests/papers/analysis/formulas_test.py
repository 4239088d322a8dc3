"""Compares the numbers of analyses with independent computations."""

import numpy as np
import pandas as pd
import pytest

from tf_adapters.common.errors import UserError
from tf_adapters.papers.analysis import curves
from tf_adapters.papers.analysis import gates
from tf_adapters.papers.analysis import gradient_norms
from tf_adapters.papers.analysis import loss_landscape
from tf_adapters.papers.analysis import shift_agreement
from tf_adapters.papers.analysis import shift_directions
from tf_adapters.papers.analysis import shift_words
from tf_adapters.papers.analysis import similarity
from tf_adapters.papers.analysis import span_ablation
from tf_adapters.papers.analysis import stability
from tf_adapters.papers.analysis import token_shift
from tf_adapters.papers.analysis import trade_off
from tf_adapters.papers.analysis import transfer

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


def test_the_middle_block_of_an_odd_number_is_in_neither_half():
    halves = [similarity.half_of(block, 5) for block in range(1, 6)]
    assert halves == ["lower", "lower", "middle", "upper", "upper"]


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
    found = span_ablation.percent_changes(values, 0.8)
    expected = -np.array(
        [[0.01, 0.03, 0.07], [np.nan, 0.02, 0.06], [np.nan, np.nan, 0.04]]
    )
    np.testing.assert_allclose(found, 100 * expected / 0.8)
    with pytest.raises(UserError, match="complete model is 0"):
        span_ablation.percent_changes(values, 0.0)


def test_spans_are_named_and_their_changes_averaged_over_runs():
    names = [span_ablation.name_of_span(*s, 3) for s in span_ablation.spans(3)]
    # The middle one of three blocks is in neither half.
    assert names == ["lower half", "", "all", "one", "", "upper half"]
    assert span_ablation.name_of_span(0, 1, 4) == "lower half"
    assert span_ablation.name_of_span(2, 3, 4) == "upper half"
    rows = [("a", 0, 0, -1.0), ("a", 0, 1, -8.0), ("a", 1, 1, -4.0)]
    rows += [("b", 0, 0, -3.0), ("b", 0, 1, -10.0), ("b", 1, 1, 0.0)]
    table = pd.DataFrame(
        rows, columns=["run", "first", "last", "change_percent"]
    )
    np.testing.assert_array_equal(
        span_ablation.mean_changes(table), [[-2, -9], [np.nan, -2]]
    )


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
    # Where the loss is NaN, the valley has ended.
    steep = np.where(np.abs(fine - 1) < 0.5, 0.0, np.nan)
    assert loss_landscape.width(fine, steep) == pytest.approx(1, abs=0.003)


def test_mean_shift_leaves_padding_out():
    alphas = [np.array([[[1.0], [-3.0], [100.0]]]), np.full((1, 3, 1), -2.0)]
    sums, count = token_shift.mean_token_shifts(alphas, [[1, 1, 0]])
    np.testing.assert_allclose(sums / count, [2, 2])


def test_weights_of_shifts_are_averaged_over_runs():
    rows = [("a", 1, 0.25), ("a", 2, 4.0), ("b", 1, 0.75), ("b", 2, 2.0)]
    found = token_shift.shifts_of_blocks(
        pd.DataFrame(rows, columns=["run", "block", "alpha"])
    )
    assert found["mean"].to_dict() == {1: 0.5, 2: 3.0}
    # Half the difference of two values: their deviation by the root of two.
    assert found["sem"].to_dict() == pytest.approx({1: 0.25, 2: 1.0})


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
    runs.loc[:2, "rate"] = None
    counts = stability.boxes(runs, "rate", "validation").set_index("box").runs
    assert counts.to_dict() == {"none": 3, 1e-5: 4}


# A head of five weights for CoLA, of seven for RTE.
RUNS = pd.DataFrame(
    [
        ("cola", "full", None, 105, 5, 0.1, 0.5),
        ("rte", "full", None, 107, 7, 0.2, 0.7),
        ("cola", "houlsby", 8, 15, 5, 0.3, 0.4),
        ("cola", "houlsby", 8, 15, 5, 0.4, 0.5),
        ("rte", "houlsby", 8, 17, 7, 0.5, 0.71),
        ("cola", "houlsby", 64, 45, 5, 0.6, 0.6),
    ],
    columns=[
        "task",
        "method",
        "method.units",
        "trained_weights",
        "head_weights",
        "validation",
        "test",
    ],
)


def test_trade_off_means_over_seeds():
    runs = trade_off.count_without_head(RUNS)
    found = trade_off.means_over_seeds(runs, ["method.units"], "test")
    rows = {(r.task, r.x): r for r in found.itertuples()}
    row = rows["cola", 10]
    assert (row.mean, row.runs) == (pytest.approx(0.45), 2)
    assert row.error == pytest.approx(0.05)
    assert np.isnan(rows["rte", 10].error) and len(rows) == 5


def test_trade_off_takes_the_best_settings_on_validation():
    rows = [
        # Mean of validation 0.5 at 1e-3, 0.45 at 1e-4, whose test is better.
        (1e-3, 0, 0.7, 0.1),
        (1e-3, 1, 0.3, 0.2),
        (1e-4, 0, 0.5, 0.8),
        (1e-4, 1, 0.4, 0.9),
        # One seed alone does not compete.
        (1e-2, 0, 0.9, 0.99),
    ]
    runs = pd.DataFrame(rows, columns=["rate", "seed", "validation", "test"])
    runs = runs.assign(task="cola", method="full", trained_weights=10)
    chosen = trade_off.select(runs, [], ["rate"])
    assert trade_off.means_over_seeds(chosen, [], "test")["mean"][
        0
    ] == pytest.approx(0.15)
    by_rate = trade_off.means_over_seeds(runs, ["rate"], "test", x="rate")
    assert by_rate.x.tolist() == [1e-3, 1e-4, 1e-2]
    np.testing.assert_allclose(by_rate["mean"], [0.15, 0.85, 0.99])


def test_percentiles_are_of_differences_over_tasks():
    runs = trade_off.count_without_head(RUNS)
    means = trade_off.means_over_seeds(runs, ["method.units"], "test")
    found = trade_off.percentiles(means, "full").set_index("x")
    # CoLA is 5 points lower, RTE one higher.
    expected = np.percentile([-5, 1], (20, 50, 80))
    np.testing.assert_allclose(found.loc[10, ["p20", "p50", "p80"]], expected)
    assert found.loc[40, "p50"] == pytest.approx(10)
    table = found.reset_index().assign(
        baseline="full", over=trade_off.WEIGHTS, of="test accuracy"
    )
    # As far apart as a norm's weights and a block's.
    table = table.assign(x=[10 ** (3 * place) for place in range(len(table))])
    (axes,) = trade_off.TradeOff().draw(table).axes
    assert axes.get_xlim()[0] > 0


def test_shares_of_gates():
    report = {
        "gates": 10,
        "gates_open_expected": 0.4,
        "gates_open_expected_at_start": 0.83,
        "gates_open_sampled": 0.5,
        "gates_open_sampled_at_start": 0.8,
        "gates_exactly_zero": 0.7,
    }
    found = {n: v for n, *v in gates.shares({"method_report": report})}
    assert found["expected"] == [0.4, 0.83]
    assert found["not exactly zero"] == [pytest.approx(0.3), 1.0]
    with pytest.raises(UserError, match="has no gates"):
        list(gates.shares({"task": "rte", "method": "full"}))


def test_gates_of_runs_that_differ_in_the_seed_are_averaged():
    rows = [
        ("a", "sst2", "minilm", 0.0, "expected", 0.8, 0.83),
        ("b", "sst2", "minilm", 0.0, "expected", 0.4, 0.83),
        ("c", "sst2", "minilm", 1e-5, "expected", 0.1, 0.83),
        ("d", "sst2", "base", 0.0, "expected", 0.2, 0.83),
    ]
    table = pd.DataFrame(rows, columns=gates.COLUMNS)
    found = gates.averaged(table).set_index(["group", "l0_lambda"]).open
    assert found.to_dict() == pytest.approx(
        {
            ("sst2, minilm", 0.0): 0.6,
            ("sst2, minilm", 1e-5): 0.1,
            ("sst2, base", 0.0): 0.2,
        }
    )
    assert set(gates.averaged(table[:3]).group) == {"sst2"}


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


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("disentangled_attention_encoder_layer_0/query/kernel", "block 1"),
        ("transformer_layer_1.query.kernel/difference", "block 2"),
        ("group_0_inner_layer_0/query/kernel", "shared"),
        ("block_0_after_ffn/shared_projections/up_kernel", "shared"),
        ("shared_prefix/vectors", "shared"),
        ("final_norm/gamma", "final_norm"),
        ("prompt/vectors", "embeddings"),
        ("rte/head/kernel", "head"),
    ],
)
def test_parts_of_all_methods_and_encoders(name, part):
    assert gradient_norms.part_of(name) == part


def test_the_final_rise_is_the_last_value_minus_the_lowest():
    rows = [
        (run, "full", 0, step, metric, value)
        for run, metric, values in (
            ("a", "loss", [3.0, 1.0, 1.5]),
            ("a", "accuracy", [60.0, 70.0, 90.0]),
            ("b", "loss", [3.0, 2.0, 2.0]),
        )
        for step, value in enumerate(values)
    ]
    table = pd.DataFrame(rows, columns=curves.COLUMNS)
    table = table.sort_values(["run", "step"], ignore_index=True)
    found = table.assign(rise=curves.final_rises(table)).dropna()
    assert found[["run", "metric", "step", "rise"]].to_numpy().tolist() == [
        ["a", "loss", 2, 0.5],
        ["a", "accuracy", 2, 30.0],
        ["b", "loss", 2, 0.0],
    ]


def test_curves_are_means_over_runs():
    rows = [
        ("a", "full", 0, 2, "loss", 1.0),
        ("b", "full", 0, 2, "loss", 3.0),
        ("a", "full", 0, 4, "loss", 0.5),
        ("c", "houlsby", 0, 2, "loss", 7.0),
    ]
    found = curves.spread_over_runs(pd.DataFrame(rows, columns=curves.COLUMNS))
    values = {(r.method, r.step): r for r in found.itertuples()}
    first = values["full", 2]
    assert (first.mean, first.min, first.max, first.count) == (2, 1, 3, 2)
    assert values["full", 4].mean == 0.5 and values["houlsby", 2].mean == 7


def test_the_plane_of_shifts_is_that_of_numpys_singular_vectors():
    before, after = GENERATOR.normal(size=(2, 9, 5))
    found = np.concatenate(shift_directions.plane(before, after))
    joined = np.concatenate([before, after])
    centered = joined - joined.mean(axis=0)
    *_, axes = np.linalg.svd(centered, full_matrices=False)
    expected = centered @ axes[:2].T
    # Either direction of a component is one.
    signs = np.sign(np.sum(found * expected, axis=0))
    np.testing.assert_allclose(found, signs * expected, atol=1e-9)


def test_agreement_is_the_mean_cosine_over_pairs_of_tokens():
    labels = [0, 0, 1]
    texts = [GENERATOR.normal(size=(2, n, 4)) for n in (3, 2, 4)]
    found = shift_agreement.agreement(
        [shift_agreement.sum_of_directions(*text) for text in texts],
        [text.shape[1] for text in texts],
        labels,
    )
    shifts = [text[1] - text[0] for text in texts]

    def mean_cosine(pairs):
        cosines = [
            one @ other / np.linalg.norm(one) / np.linalg.norm(other)
            for i, j in pairs
            for one in shifts[i]
            for other in shifts[j]
        ]
        return np.mean(cosines)

    expected = mean_cosine([(0, 1)]), mean_cosine([(0, 2), (1, 2)])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_shifts_of_words_are_means_over_places_and_blocks():
    alphas = np.array([[1.0, -2.0, 3.0], [0.0, 4.0, -5.0]])
    found = shift_words.mean_shifts([7, 8, 7], alphas, lengths=[2.0, 10.0])
    # Word 7: places 0 and 2; a block's weight times the length of its vector.
    first = np.mean([(1 * 2 + 0 * 10) / 2, (3 * 2 + 5 * 10) / 2])
    assert found == {7: (first, 2), 8: ((2 * 2 + 4 * 10) / 2, 1)}


def test_runs_in_several_languages_are_averaged_over_seeds_only():
    columns = ["run", "task", "data.train_fraction", "method", "seed"]
    rows = [
        [f"{method}{fraction}{seed}", "xnli", fraction, method, seed]
        for method in ("full", "houlsby")
        for fraction in (0.05, 0.1)
        for seed in (0, 1)
    ]
    table = pd.DataFrame(rows, columns=columns)
    lines = transfer.lines_of(table.assign(language="all", score=1.0))
    assert list(dict.fromkeys(lines)) == [
        "full, train_fraction 0.05",
        "full, train_fraction 0.1",
        "houlsby, train_fraction 0.05",
        "houlsby, train_fraction 0.1",
    ]
    same = table[table["data.train_fraction"] == 0.1]
    assert set(transfer.lines_of(same)) == {"full", "houlsby"}
