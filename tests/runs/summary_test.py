"""Tests the printed summary of a result."""

import types

import pytest

from tf_adapters.config import resolve
from tf_adapters.runs import summary

RESULT = {
    "validation": {"accuracy": 0.5},
    "encoder_weights": 1_000_000,
    "examples_per_second": 10.0,
    "padding_share": 0.1,
    "seconds": 3.0,
}


def test_the_size_of_an_adapter_where_it_is(tmp_path, capsys):
    """A worker that is not the chief has none in its own folder."""
    config = resolve.resolve_config(
        {"task": "demo_sentiment", "method": "houlsby"}
    )
    summary.print_run(RESULT, config, tmp_path)
    assert "adapter:" not in capsys.readouterr().out
    (tmp_path / "adapter").mkdir()
    weights = tmp_path / "adapter" / "adapter.safetensors"
    weights.write_bytes(bytes(2_500_000))
    summary.print_run(RESULT, config, tmp_path)
    out = capsys.readouterr().out
    assert "(2.5 MB next to an encoder of 4 MB)" in out and "10 examples" in out


def test_steps_that_float16_skipped_are_said(tmp_path, capsys):
    config = resolve.resolve_config(
        {"task": "demo_sentiment", "method": "houlsby"}
    )
    for skipped in (0, 7):
        half = {**RESULT, "steps": 60, "skipped_steps": skipped}
        summary.print_run(half, config, tmp_path)
        said = "7 of 60 steps were skipped" in capsys.readouterr().out
        assert said == bool(skipped)


@pytest.mark.parametrize(
    ("limit", "found"),
    [(None, "1 of 3 rows, drawn"), (2, "validation: 1 rows, drawn")],
)
def test_the_rows_of_a_table_are_said_if_all_are_used(limit, found):
    config = resolve.resolve_config(
        {"task": "toy", "method": "houlsby"},
        {"data": {"max_train_examples": limit}},
    )
    task = types.SimpleNamespace(
        kind=types.SimpleNamespace(label="class"),
        files={"train": "a.csv"},
        labels=("no", "yes"),
    )
    rows = {"train": [{"label": 0}] * 2, "validation": [{"label": 1}]}
    lines = []
    summary.print_labels(task, rows, config, lines.append)
    assert found in lines[0]


@pytest.mark.parametrize(
    ("bias", "said"),
    [(0, "the head begins at 0,"), ("mean", ""), (1e3, "begins at 1000,")],
)
def test_labels_far_from_the_heads_start_are_said(bias, said):
    config = resolve.resolve_config(
        {"task": "toy", "method": "houlsby", "head": {"initial_bias": bias}}
    )
    task = types.SimpleNamespace(
        kind=types.SimpleNamespace(label="number"), head="regression", files={}
    )
    rows = {"train": [{"label": 95}, {"label": 105}]}
    lines = []
    summary.print_labels(task, rows, config, lines.append)
    assert lines[0].startswith("labels from 95 to 105, mean 100")
    assert said in lines[0] and ("head" in lines[0]) == bool(said)


@pytest.mark.parametrize(
    ("most", "patience", "found"),
    [
        (None, None, "0.0003, 6 steps: 3 epochs of 2 (change with"),
        (6, None, "0.0003, 6 steps: 3 epochs of 2 (change with"),
        (5, None, "0.0003, 5 steps; an epoch has 2 (change with"),
        (None, 1, "0.0003, at most 6 steps: 3 epochs of 2 (change with"),
    ],
)
def test_the_plan_of_a_run(most, patience, found):
    train = {"epochs": 3, "batch_size": 2, "max_steps": most}
    train["early_stopping_patience"] = patience
    config = resolve.resolve_config(
        {"task": "toy", "method": "houlsby", "train": train}
    )
    lines = []
    summary.print_plan(config, {"train": [{}] * 4}, lines.append)
    assert found in lines[0]
