"""Tests a study's metric by weights or settings, from its files."""

import pandas as pd
import pytest

from tf_adapters.cli import analyse
from tf_adapters.papers.analysis import trade_off

# Two sizes of training set, two seeds, two rates; test is half of validation.
RUNS = [
    ("full", 100, 1e-4, [0.4, 0.6]),
    ("full", 100, 1e-3, [0.3, 0.5]),
    ("full", 4000, 1e-4, [0.6, 0.8]),
    ("full", 4000, 1e-3, [0.9, 0.7]),
    ("bitfit", 100, 1e-4, [0.5, 0.5]),
    ("bitfit", 100, 1e-3, [0.2, 0.2]),
]
SIZE, RATE = "data.max_train_examples", "train.learning_rate"


@pytest.fixture
def study(tmp_path):
    rows = [
        {
            "run": f"{method}-{size}-{rate}-{seed}",
            "state": "finished",
            "task": "squad",
            "metric": "answer_f1",
            "method": method,
            SIZE: size,
            RATE: rate,
            "seed": seed,
            "validation": value,
            "test": value / 2,
            "test/exact_match": value / 4,
            "trained_weights": 50,
        }
        for method, size, rate, values in RUNS
        for seed, value in enumerate(values)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    return tmp_path


def _table(study, *flags):
    flags = [f"--study_dir={study}", f"--output={study}/made", *flags]
    assert analyse.run_analysis(["trade_off", *flags]) == 0
    assert (study / "made.png").stat().st_size > 5000
    return pd.read_csv(study / "made.csv")


def test_a_metric_against_the_number_of_training_examples(study):
    table = _table(study, f"--x={SIZE}", f"--select_over={RATE}")
    means = table.set_index(["method", "x"])["mean"].to_dict()
    assert means == pytest.approx(
        {("full", 100): 0.5, ("full", 4000): 0.8, ("bitfit", 100): 0.5}
    )
    assert set(table.over) == {SIZE} and set(table.of) == {
        "validation answer_f1"
    }
    assert set(table.runs) == {2}


def test_the_axis_has_the_values_that_were_trained(study):
    drawn = trade_off.TradeOff().draw(_table(study, f"--x={SIZE}"))
    (axis,) = drawn.axes
    labels = [label.get_text() for label in axis.get_xticklabels()]
    assert labels == ["100", "4000"]
    assert axis.get_xlabel() == "training examples"


def test_the_split_is_that_of_the_studys_table(study):
    (study / "table.csv").write_text("task,split\nsquad,test\n")
    table = _table(study, f"--x={SIZE}", f"--select_over={RATE}")
    assert table["mean"].tolist() == pytest.approx([0.25, 0.4, 0.25])
    table = _table(study, f"--x={RATE}", "--metric=exact_match")
    assert set(table.of) == {"test exact_match"}


def test_a_line_for_each_value_of_another_setting(study):
    table = _table(study, f"--x={RATE}", f"--lines={SIZE}")
    means = table.set_index(["method", "x"])["mean"].to_dict()
    # Of both methods, at 100 examples.
    expected = {(100, 1e-4): 0.5, (100, 1e-3): 0.3}
    expected |= {(4000, 1e-4): 0.7, (4000, 1e-3): 0.8}
    assert means == pytest.approx(expected)


def test_a_metric_that_no_run_has_is_an_error(study, capsys):
    flags = [f"--study_dir={study}", "--metric=f1"]
    assert analyse.run_analysis(["trade_off", *flags]) == 1
    assert "has validation/f1" in capsys.readouterr().err


def test_methods_without_the_setting_of_the_axis_are_named(study, capsys):
    runs = pd.read_csv(study / "runs.csv")
    runs.loc[runs.method == "bitfit", SIZE] = None
    runs.to_csv(study / "runs.csv", index=False)
    flags = [f"--x={SIZE}", f"--select_over={RATE}"]
    assert analyse.run_analysis(["trade_off", f"--study_dir={study}", *flags])
    message = f"--x={SIZE} is no setting of all methods: ['bitfit'] have no"
    assert message in capsys.readouterr().err
    # A baseline is at zero, wherever it is on the axis.
    table = _table(study, *flags, "--baseline=bitfit")
    assert set(table.method) == {"full"}


def test_an_axis_of_words_is_refused(study, capsys):
    flags = [f"--study_dir={study}", "--x=method", f"--output={study}/made"]
    flags += [f"--sizes={SIZE}", f"--select_over={RATE}"]
    assert analyse.run_analysis(["trade_off", *flags]) == 1
    message = "--x=method has no numbers for an axis. Its values: ['bitfit', 'f"
    assert message in capsys.readouterr().err
