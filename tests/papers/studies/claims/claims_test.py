"""Tests verdicts on claims: from runs, their predictions, or a figure."""

import csv

import numpy as np
import pytest

from tests.fixtures import studies
from tf_adapters import heads
from tf_adapters.papers.studies.claims import claim_pairs
from tf_adapters.papers.studies.claims import claims
from tf_adapters.papers.studies.claims import statistics
from tf_adapters.papers.studies.report import cells as study_cells
from tf_adapters.papers.studies.report import files
from tf_adapters.papers.studies.report.run_rows import run_rows
from tf_adapters.runs import predictions

HEAD = heads.HEADS["classification"](("no", "yes"))
GRID = {
    "task": ["sst2", "rte"],
    "method": ["houlsby", "head_only"],
    "seed": [0, 1, 2],
}
CLAIM = {
    "says": "Adapters are better than a head alone.",
    "higher": {"method": "houlsby"},
    "than": {"method": "head_only"},
}
COUNT = 200
TARGET = np.random.default_rng(7).integers(2, size=COUNT)


def _judge(
    folder,
    score,
    own=(CLAIM,),
    predicts=True,
    figures=None,
    block=None,
    **changes,
):
    """Returns the verdicts on results from a function of a `Run`.

    Args:
        folder: Path of the study.
        score: Function that returns the accuracy of a `Run`, or `None` if it is
            missing.
        own: The claims.
        predicts: Whether runs have stored predictions.
        figures: See a study's `figures`.
        block: The study's form.
        **changes: Of the study.
    """
    changes = {"grid": GRID, "small": None, **changes}
    study, runs = studies.plan(
        folder, block, claims=list(own), figures=figures, **changes
    )
    rows = []
    for run in runs:
        value = score(run)
        result = None
        if value is not None:
            result = studies.finished(validation={run.metric: value})
            if predicts:
                _predict(folder / run.id, run, value)
        rows += run_rows(run, result)
    chosen = study_cells.chosen_rows(rows, study.report, study.select_over)
    tables = {"figure2": sorted(folder.glob("figures/*.csv"))}
    return claims.judge(study, runs, chosen, folder, tables)


def _predict(folder, run, accuracy):
    """Stores predictions with an accuracy; each run has other errors."""
    generator = np.random.default_rng(list(run.id.encode()))
    wrong = generator.permutation(COUNT)[: round((1 - accuracy) * COUNT)]
    predicted = TARGET.copy()
    predicted[wrong] = 1 - predicted[wrong]
    compared = {"target": TARGET, "predicted": predicted}
    predictions.save_predictions(folder, "validation", HEAD, compared)


def _by_method(houlsby, head_only, spread=0.0):
    def score(run):
        base = houlsby if run.point["method"] == "houlsby" else head_only
        return base + spread * (run.config.seed - 1)

    return score


def test_a_large_difference_is_shown(tmp_path):
    (verdict,) = _judge(tmp_path, _by_method(0.9, 0.7, 0.02))
    assert verdict.verdict == "shown"
    found = verdict.comparison
    assert found.difference == pytest.approx(0.2)
    # Both tasks have the same labels, but are other examples.
    assert (found.seeds, found.pairs, found.examples) == (3, 6, 2 * COUNT)
    low, high = (100 * end for end in found.interval())
    assert verdict.sentence == (
        "Shown: houlsby is 20.0 points higher than head_only (95 % interval "
        f"{low:+.1f} to {high:+.1f}, corrected p < 0.001, 3 seeds, 6 pairs, "
        "400 examples). The learning rates were not tuned: 0.0003 and 0.005."
    )


def test_a_small_one_is_too_small_to_tell(tmp_path):
    (verdict,) = _judge(tmp_path, _by_method(0.80, 0.79))
    assert verdict.verdict == "too small to tell"


def test_what_is_surely_less_than_half_of_the_printed_one(tmp_path):
    own = [{**CLAIM, "printed": printed} for printed in (40.0, 4.0)]
    first, second = _judge(tmp_path, _by_method(0.80, 0.79), own)
    assert first.verdict == "smaller than half of the printed"
    assert second.verdict == "too small to tell"
    assert "; the paper prints 40.0 points." in first.sentence


def test_the_opposite_is_the_other_way(tmp_path):
    (verdict,) = _judge(tmp_path, _by_method(0.7, 0.9))
    assert verdict.verdict == "the other way"
    assert "houlsby is 20.0 points lower than head_only" in verdict.sentence


def test_one_seed_says_what_its_interval_covers(tmp_path):
    grid = {**GRID, "seed": [0]}
    (verdict,) = _judge(tmp_path, _by_method(0.9, 0.7), grid=grid)
    assert verdict.comparison.seeds == 1
    assert "only the choice of examples" in verdict.sentence


def test_equal_answers_tell_nothing(tmp_path):
    own = {**CLAIM, "printed": 4.0}
    (verdict,) = _judge(tmp_path, _by_method(1.0, 1.0), [own])
    assert verdict.verdict == "too small to tell"
    assert verdict.sentence.count("Both sides answer every example alike.") == 1


def test_the_sentence_names_the_values_that_ran(tmp_path):
    sizes = {"method": "houlsby", "data.max_train_examples": [8, 80, 800]}
    of_runs = {**CLAIM, "higher": sizes}
    grids = {**GRID, "data.max_train_examples": [80]}
    report = {"rows": ["method", "data.max_train_examples"]}
    (verdict,) = _judge(
        *(tmp_path, _by_method(0.9, 0.7), [of_runs]), grid=grids, report=report
    )
    assert "houlsby, data.max_train_examples 80 is" in verdict.sentence


def test_without_predictions_pairs_are_compared(tmp_path):
    def score(run):
        gain = 0.02 * (run.config.seed - 1)
        return 0.9 + gain if run.point["method"] == "houlsby" else 0.7

    (verdict,) = _judge(tmp_path, score, predicts=False)
    found = verdict.comparison
    assert (found.seeds, found.pairs) == (None, 6)
    assert found.p < 0.001
    assert verdict.verdict == "shown"
    assert "6 pairs without predictions" in verdict.sentence


def test_one_pair_alone_shows_nothing(tmp_path):
    own = [{**CLAIM, "where": {"task": "rte"}}]
    grid = {**GRID, "seed": [0]}
    score = _by_method(0.9, 0.7)
    (verdict,) = _judge(tmp_path, score, own, predicts=False, grid=grid)
    assert verdict.verdict == "too small to tell"
    assert "no interval and no p, since there is one" in verdict.sentence
    (row,) = claims.claim_rows([verdict])
    assert all(row[key] is None for key in ("low", "high", "p", "corrected_p"))


def test_more_claims_are_corrected_for_their_number(tmp_path):
    (alone,) = _judge(tmp_path, _by_method(0.82, 0.75))
    first, second, _ = _judge(tmp_path, _by_method(0.82, 0.75), [CLAIM] * 3)
    assert alone.comparison.p == first.comparison.p == alone.corrected_p
    assert first.corrected_p == pytest.approx(3 * alone.corrected_p)
    assert second.corrected_p == first.corrected_p


SPREADS = {
    "says": "Adapters vary more between seeds.",
    "higher": {"method": "houlsby"},
    "than": {"method": "head_only"},
    "spreads": "seed",
}


def test_spreads_are_compared_in_boxes_of_runs(tmp_path):
    seeds = list(range(8))

    def score(run):
        # Tasks differ by far, which is no spread over seeds.
        base = 0.4 + 0.4 * (run.config.task == "rte")
        wide = 0.02 if run.point["method"] == "houlsby" else 0.001
        return base + wide * (run.config.seed - 3.5)

    (verdict,) = _judge(
        *(tmp_path, score, [SPREADS]),
        predicts=False,
        grid={**GRID, "seed": seeds},
    )
    found = verdict.comparison
    # Eight even values, 0.02 apart, are 0.04 from their median on average.
    assert found.difference == pytest.approx(0.04 - 0.002)
    assert (found.pairs, found.runs) == (2, 32)
    assert verdict.verdict == "shown"
    assert verdict.sentence.startswith(
        "Shown: the spread of houlsby is 3.8 points larger than that of "
        "head_only (95 % interval "
    )
    assert "Brown-Forsythe p < 0.001, 32 runs in 2 pairs" in verdict.sentence
    (row,) = claims.claim_rows([verdict])
    assert row["test"] == "permutation" and row["brown_forsythe_p"] < 0.001


def test_a_box_over_two_settings(tmp_path):
    grid = {**GRID, "task": ["rte"], "train.epochs": [1, 2], "seed": [0, 1]}
    where = [{"when": {"method": "houlsby"}, "set": {"method.units": 8}}]
    report = {"rows": ["method", "train.epochs"]}
    own = [
        {**SPREADS, "spreads": s} for s in ("seed", ["seed", "train.epochs"])
    ]
    few, enough = _judge(
        *(tmp_path, lambda run: 0.5 + 0.1 * run.config.seed, own),
        predicts=False,
        grid=grid,
        where=where,
        report=report,
    )
    assert few.sentence == (
        "Not measured: no box has 3 finished runs on both sides."
    )
    assert (enough.comparison.pairs, enough.comparison.runs) == (1, 8)


def test_boxes_of_unequal_sizes_are_cut(tmp_path):
    """The mean deviation from the median grows with the number of values."""
    seeds = list(range(8))

    def score(run):
        is_missing = run.config.seed < 5 and run.point["method"] == "head_only"
        return None if is_missing else 0.4 + 0.02 * run.config.seed

    (verdict,) = _judge(
        *(tmp_path, score, [SPREADS]),
        predicts=False,
        grid={**GRID, "task": ["rte"], "seed": seeds},
    )
    # The seeds 5 to 7 of each side.
    assert verdict.comparison.runs == 6
    assert verdict.comparison.difference == pytest.approx(0)


def test_boxes_of_a_setting_that_only_one_side_has(tmp_path):
    task_and_seed = {"task": ["rte"], "seed": [0, 1, 2, 3]}
    sizes = {"method": ["houlsby"], "method.units": [4, 8]}
    grid = [
        {**task_and_seed, **sizes},
        {**task_and_seed, "method": ["head_only"]},
    ]

    def score(run):
        # Sizes differ by far, which is no spread over seeds.
        return 0.4 + 0.1 * run.point.get("method.units", 0) / 4

    (verdict,) = _judge(
        *(tmp_path, score, [SPREADS]),
        predicts=False,
        grid=grid,
        where=[],
        report={"rows": ["method", "method.units"]},
    )
    assert (verdict.comparison.pairs, verdict.comparison.runs) == (1, 12)
    assert verdict.comparison.difference == pytest.approx(0)


def test_a_margin_is_in_points(tmp_path):
    margins = {"within": 8.0}, {"at_most_behind": 8.0}, {"within": 0.5}
    own = [{**CLAIM, **margin} for margin in margins]
    found = _judge(tmp_path, _by_method(0.95, 0.94), own)
    words = [verdict.verdict for verdict in found]
    assert words == ["within", "within", "too small to tell"]
    assert "than head_only, where the claim allows 8 either way (95 %" in (
        found[0].sentence
    )
    assert "where the claim allows 8 below (95 %" in found[1].sentence
    assert claims.claim_rows(found)[0]["margin"] == 8.0


def test_a_number_is_printed_for_the_measured_tasks(tmp_path):
    printed = {"sst2": 30.0, "rte": 50.0, "average": 1.0}
    own = [{**CLAIM, "printed": printed}]
    (verdict,) = _judge(tmp_path, _by_method(0.80, 0.79), own)
    assert "; the paper prints 40.0 points." in verdict.sentence
    assert verdict.verdict == "smaller than half of the printed"


def test_a_form_may_be_unable_to_test_a_claim(tmp_path):
    own = {**CLAIM, "not_testable": {"small": "there is no head."}}
    changes = {"own": [own, CLAIM], "small": {"seed": [0, 1]}}
    full, _ = _judge(tmp_path, _by_method(0.9, 0.7), **changes)
    assert full.verdict == "shown"
    first, second = _judge(
        tmp_path, _by_method(0.9, 0.7), block="small", **changes
    )
    assert first.verdict == "not testable here"
    assert first.sentence == "Not testable here: there is no head."
    # It does not count in the correction.
    assert second.corrected_p == second.comparison.p


def test_what_has_not_finished_is_not_measured(tmp_path):
    def score(run):
        return 0.9 if run.point["method"] == "houlsby" else None

    (verdict,) = _judge(tmp_path, score)
    assert verdict.verdict == "not measured"
    assert verdict.sentence == (
        "Not measured: no finished run on one side has a finished counterpart "
        "on the other."
    )


def test_pairs_agree_in_all_but_what_is_compared(tmp_path):
    grid = [
        {
            "task": ["rte"],
            "method": ["houlsby"],
            "method.units": [8, 64],
            "seed": [0, 1],
        },
        {"task": ["rte"], "method": ["head_only"], "seed": [1, 0]},
    ]
    study, runs = studies.plan(
        tmp_path,
        grid=grid,
        claims=[CLAIM],
        small=None,
        where=None,
        report={"rows": ["method", "method.units"]},
    )
    rows = [
        row
        for run in runs
        for row in run_rows(run, studies.finished(validation={"accuracy": 0.5}))
    ]
    matched = claim_pairs.match_runs(study.claims[0], runs, rows)
    found = {
        (high["method.units"], high["seed"], low["seed"], setting)
        for setting, high, low in matched
    }
    assert {one[:3] for one in found} == {
        (8, 0, 0),
        (8, 1, 1),
        (64, 0, 0),
        (64, 1, 1),
    }
    assert len({one[3] for one in found}) == 2  # A setting for each size.


def test_of_what_is_selected_the_best_is_compared(tmp_path):
    rates = {"train.learning_rate": [1e-4, 1e-3]}
    seen = []

    def score(run):
        adapters = run.point["method"] == "houlsby"
        good = run.config.train.learning_rate == (1e-4 if adapters else 1e-3)
        seen.append(good)
        return (0.9 if adapters else 0.8) if good else 0.3

    (verdict,) = _judge(tmp_path, score, select_over=rates)
    assert verdict.comparison.difference == pytest.approx(0.1)
    assert verdict.comparison.pairs == 6 and len(seen) == 24
    assert "not tuned" not in verdict.sentence


def test_a_rate_that_others_choose_was_not_tuned(tmp_path):
    rates = {"train.learning_rate": [1e-4, 1e-3]}
    others = {**GRID, "method": ["bitfit"], "select_over": rates}
    (verdict,) = _judge(
        tmp_path, lambda run: 0.8 + 0.01 * run.config.seed, grid=[GRID, others]
    )
    assert "not tuned: 0.0003 and 0.005." in verdict.sentence


def test_an_average_over_languages_draws_the_examples_of_each(tmp_path):
    grid = {"task": ["xnli"], "method": ["houlsby", "head_only"], "seed": [0]}
    study, runs = studies.plan(
        tmp_path,
        grid=grid,
        claims=[CLAIM],
        small=None,
        report={"metric": "transfer/target"},
    )
    rows = []
    for run in runs:
        own = {"en": 0.9, "de": 0.8, "fr": 0.6}
        if run.point["method"] == "head_only":
            own = {"en": 0.1, "de": 0.7, "fr": 0.5}
        for language, accuracy in own.items():
            wrong = np.arange(COUNT) >= round(accuracy * COUNT)
            predictions.save_predictions(
                tmp_path / run.id,
                f"transfer/{language}",
                HEAD,
                {"target": TARGET, "predicted": np.where(wrong, 9, TARGET)},
            )
        languages = {
            k: {"split": "test", "accuracy": v} for k, v in own.items()
        }
        target = (own["de"] + own["fr"]) / 2
        transfer = {
            "metric": "accuracy",
            "target": target,
            "languages": languages,
        }
        result = studies.finished(
            validation={"accuracy": 0.5}, transfer=transfer
        )
        rows += run_rows(run, result)
    (verdict,) = claims.judge(study, runs, rows, tmp_path, {})
    found = verdict.comparison
    assert found.difference == pytest.approx(0.1)  # Without English.
    # One text in two languages is one example.
    assert (found.pairs, found.examples) == (2, COUNT)
    # And the two languages of a pair of runs are one sample of seeds.
    pairs = claim_pairs.predicted_pairs(
        claim_pairs.match_runs(study.claims[0], runs, rows),
        runs,
        tmp_path,
        "validation",
    )
    assert len({pair.setting for pair in pairs}) == 2
    assert len({(pair.group, pair.sample) for pair in pairs}) == 1
    assert None not in (pairs[0].group, pairs[0].sample)


def test_tasks_of_one_run_are_one_sample_of_seeds(tmp_path):
    grid = [
        {
            "method": ["multitask"],
            "method.tasks": [["sst2", "rte"]],
            "seed": [0, 1],
        },
        {"task": ["sst2", "rte"], "method": ["head_only"], "seed": [0, 1]},
    ]
    own = {**CLAIM, "higher": {"method": "multitask"}}
    changes = {"grid": grid, "where": None, "small": None}
    study, runs = studies.plan(tmp_path, claims=[own], **changes)
    rows = []
    for run in runs:
        if len(run.metrics) == 1:
            _predict(tmp_path / run.id, run, 0.5)
            result = studies.finished(validation={"accuracy": 0.5})
        else:
            tasks = {}
            for task in run.metrics:
                _predict(tmp_path / run.id / task, run, 0.9)
                (tmp_path / run.id / task / "config.yaml").touch()
                tasks[task] = {"validation": {"accuracy": 0.9}}
            result = studies.finished(validation={"mean": 0.9}, tasks=tasks)
            result["data_fingerprint"] = dict.fromkeys(tasks, {})
        rows += run_rows(run, result)
    pairs = claim_pairs.predicted_pairs(
        claim_pairs.match_runs(study.claims[0], runs, rows),
        runs,
        tmp_path,
        "validation",
    )
    assert len(pairs) == 4
    assert len({pair.group for pair in pairs}) == 1
    # A sum over both tasks for each of the two seeds.
    assert len({pair.sample for pair in pairs}) == 2


@pytest.mark.parametrize(
    "higher",
    [
        {"method": ["houlsby", "pfeiffer"]},
        {"method": "houlsby"},  # Of two sizes, which the other side has not.
    ],
)
def test_a_baseline_counts_once_for_each_seed(tmp_path, higher):
    seeds = [0, 1, 2]
    grid = [
        {"method": ["houlsby"], "method.units": [4, 8], "seed": seeds},
        {"method": ["pfeiffer", "head_only"], "seed": seeds},
    ]
    task = {"task": "sst2", "encoder": "minilm"}
    study, runs = studies.plan(
        tmp_path,
        base=task,
        grid=grid,
        claims=[{**CLAIM, "higher": higher}],
        small=None,
        where=None,
        report={"rows": ["method", "method.units"]},
    )
    rows = []
    for run in runs:
        _predict(tmp_path / run.id, run, 0.5)
        result = studies.finished(validation={"accuracy": 0.5})
        rows += run_rows(run, result)
    matched = claim_pairs.match_runs(study.claims[0], runs, rows)
    pairs = claim_pairs.predicted_pairs(matched, runs, tmp_path, "validation")
    assert len(pairs) > 3 and len({pair.group for pair in pairs}) == 1
    assert len({pair.sample for pair in pairs}) == 3
    assert statistics.bootstrap(pairs).seeds == 3


def test_a_side_with_one_run_has_one_seed(tmp_path):
    """Three seeds of one side, all compared with the same run of the other."""
    grid = [
        {"method": ["houlsby"], "seed": [0, 1, 2]},
        {"method": ["head_only"]},
    ]
    (verdict,) = _judge(
        *(tmp_path, _by_method(0.8, 0.7, spread=0.01)),
        base={"task": "sst2", "encoder": "minilm"},
        grid=grid,
        where=None,
    )
    assert verdict.comparison.seeds == 1
    assert "With one seed the interval covers only" in verdict.sentence


def test_equal_differences_of_a_figure_have_no_interval(tmp_path):
    table = [("method", "seed", "similarity")]
    for seed in (0, 1):
        table += [("houlsby", seed, 0.75), ("head_only", seed, 0.5)]
    _write_table(tmp_path, table)
    own = {**OF_FIGURE, "where": None}
    (verdict,) = _judge(tmp_path, _by_method(0.9, 0.7), [own], figures=FIGURE)
    assert "since the samples do not differ" in verdict.sentence


FIGURE = [{"analysis": "similarity", "name": "figure2"}]
OF_FIGURE = {
    "says": "Adapters' later blocks are closer to the untuned encoder's.",
    "of": "figure2",
    "value": "similarity",
    "higher": {"method": "houlsby"},
    "than": {"method": "head_only"},
    "where": {"block": [2, 3, 4, 5, 6, 7]},
    "printed": 0.1,
}


def _write_table(folder, rows):
    path = folder / "figures" / "figure2.csv"
    path.parent.mkdir()
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def test_a_figures_rows_are_paired_by_its_other_columns(tmp_path):
    table = [("method", "block", "similarity", "error", "words")]
    for block in range(8):
        # Measured columns, which never agree, part no pairs.
        table.append(("houlsby", block, 0.9 - block / 100, 0.5, 20))
        table.append(("head_only", block, 0.5 - block / 50, 0.25, 20))
    _write_table(tmp_path, table)
    (verdict,) = _judge(
        tmp_path, _by_method(0.9, 0.7), [OF_FIGURE], figures=FIGURE
    )
    found = verdict.comparison
    assert found.pairs == 6
    expected = [0.4 + block / 100 for block in range(2, 8)]
    assert found.difference == pytest.approx(np.mean(expected))
    assert verdict.verdict == "shown" and found.p < 1e-3
    assert "is 0.445 in similarity higher than head_only" in verdict.sentence
    assert "the paper prints 0.1 in similarity" in verdict.sentence


def test_settings_of_the_grid_part_pairs_though_they_are_no_integers(tmp_path):
    table = [("method", "train.learning_rate", "seed", "similarity")]
    for rate in (0.5, 0.25):
        for seed in (0, 1):
            table.append(("houlsby", rate, seed, 1 + rate + seed))
            table.append(("head_only", rate, seed, 1.0))
    _write_table(tmp_path, table)
    own = {**OF_FIGURE, "where": None}
    rates = {"train.learning_rate": [0.5, 0.25]}
    (verdict,) = _judge(
        tmp_path,
        _by_method(0.9, 0.7),
        [own],
        figures=FIGURE,
        grid={**GRID, **rates},
        report={"rows": ["method", "train.learning_rate"]},
    )
    assert verdict.comparison.pairs == 4
    assert verdict.comparison.difference == pytest.approx(0.875)


def test_boxes_are_of_different_runs(tmp_path):
    table = [("task", "method", "setting", "similarity")]
    for rate in range(6):
        table.append(("sst2", "houlsby", f"rate {rate}", 0.9 + rate / 100))
        table.append(("sst2", "head_only", f"rate {rate}", 0.5))
    _write_table(tmp_path, table)
    own = {**OF_FIGURE, "where": None}
    (verdict,) = _judge(tmp_path, _by_method(0.9, 0.7), [own], figures=FIGURE)
    assert verdict.comparison.pairs == 6


def test_rows_of_different_numbers_of_runs_are_a_pair(tmp_path):
    table = [("task", "method", "similarity", "runs")]
    for task, runs in (("sst2", 3), ("rte", 2)):
        table.append((task, "houlsby", 0.9, runs))
        table.append((task, "head_only", 0.5, 3))
    _write_table(tmp_path, table)
    own = {**OF_FIGURE, "where": None}
    (verdict,) = _judge(tmp_path, _by_method(0.9, 0.7), [own], figures=FIGURE)
    assert verdict.comparison.pairs == 2


def test_a_figures_pairs_of_one_seed(tmp_path):
    table = [("task", "method", "similarity")]
    for task, gain in (("sst2", 0.1), ("rte", 0.2)):
        table += [(task, "houlsby", 0.5 + gain), (task, "head_only", 0.5)]
    _write_table(tmp_path, table)
    own = {**OF_FIGURE, "where": None}
    sentences = []
    for seeds in ([0], [0, 1]):
        (verdict,) = _judge(
            *(tmp_path, _by_method(0.9, 0.7), [own]),
            figures=FIGURE,
            grid={**GRID, "seed": seeds},
        )
        sentences.append(verdict.sentence)
    assert "All pairs have the same seed" in sentences[0]
    assert "have the same seed" not in sentences[1]


def test_the_blocks_of_two_runs_are_one_pair(tmp_path):
    table = [("method", "seed", "block", "similarity")]
    for seed in (0, 1):
        for block in range(8):
            table.append(("houlsby", seed, block, 0.9 + seed + block / 10))
            table.append(("head_only", seed, block, 0.5))
    _write_table(tmp_path, table)
    own = {**OF_FIGURE, "where": None}
    (verdict,) = _judge(tmp_path, _by_method(0.9, 0.7), [own], figures=FIGURE)
    found = verdict.comparison
    assert (found.pairs, found.difference) == (2, pytest.approx(1.25))
    # Two pairs show nothing, sixteen rows would.
    assert verdict.verdict == "too small to tell"
    assert found.p == pytest.approx(0.2422, abs=1e-4)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (None, "the figure `figure2` was not made"),
        (
            [("method", "block"), ("houlsby", 2)],
            "the figure `figure2` has no column `similarity`, but method",
        ),
        (
            [("method", "block", "similarity")],
            "the figure `figure2` has no pair of rows",
        ),
        (
            [("block", "similarity"), (1, 0.5)],
            "the figure `figure2` has no column `method`",
        ),
        (
            [
                ("method", "block", "similarity"),
                ("houlsby", 2, 0.5),
                ("head_only", 1, 0.5),
            ],
            "the figure `figure2` has no pair of rows",
        ),
    ],
)
def test_a_figure_may_lack_what_a_claim_needs(tmp_path, table, message):
    if table is not None:
        _write_table(tmp_path, table)
    (verdict,) = _judge(
        tmp_path, _by_method(0.9, 0.7), [OF_FIGURE], figures=FIGURE
    )
    assert verdict.verdict == "not measured" and message in verdict.sentence


def test_the_file_has_a_row_for_each_claim(tmp_path):
    verdicts = _judge(
        tmp_path,
        _by_method(0.9, 0.7),
        [CLAIM, {**CLAIM, "than": {"method": "head_only", "seed": 0}}],
    )
    rows = claims.claim_rows(verdicts)
    files.write_rows(tmp_path / "claims.csv", rows, claims.COLUMNS)
    with (tmp_path / "claims.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert first["verdict"] == "shown" and first["test"] == "bootstrap"
    assert float(first["difference"]) == pytest.approx(20.0)
    assert float(first["low"]) < 20 < float(first["high"])
    assert (first["pairs"], first["seeds"], first["examples"]) == (
        *("6", "3", "400"),
    )
    assert second["says"] == CLAIM["says"]
