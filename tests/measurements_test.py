"""Tests the rows that scripts write for `make bench`."""

import importlib
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.integration

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """Returns a function that imports a script by name."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


def _ratios(script, rows):
    """Returns the ratios of rows by case, which must differ."""
    measurements = script("measurements")
    found = {row["case"]: measurements.ratios(row) for row in rows}
    assert len(found) == len(rows)
    return found


def test_a_fusion_has_rows_of_time_and_memory(script):
    def answers(seconds, peak):
        return [{"seconds": s, "peak_bytes": peak} for s in seconds]

    rows = script("fusion_speed").rows_of(
        "minilm, adapters 8",
        {
            ("ours", "train"): answers([1.0, 2.0], 2e9),
            ("theirs", "train"): answers([3.0, 8.0], 5e9),
            ("ours", "infer"): answers([1.0, 1.0], 2e9),
            ("theirs", "infer"): answers([2.0, 0.5], 2e9),
        },
    )
    assert _ratios(script, rows) == {
        "minilm, adapters 8, train": [3.0, 4.0],
        "minilm, adapters 8, infer": [2.0, 0.5],
        "minilm, adapters 8, memory": [2.5],
    }


def test_a_start_is_compared_on_both_clocks(script):
    rows = script("starting").rows_of(
        {
            "import and load": [(8.0, 6.0), (10.0, 6.0)],
            "predict": [(16.0, 6.0), (10.0, 12.0)],
        }
    )
    assert _ratios(script, rows) == {
        "predict, clock": [0.5, 1.0],
        "predict, processor time": [1.0, 0.5],
    }


def test_a_server_is_compared_with_a_head_alone(script):
    # Texts a second, median and last percentile of the latencies.
    figures = np.array([[60.0, 0.2, 0.4], [80.0, 0.2, 0.2]])
    rows = script("serving_load").rows_of(
        {
            ("8", "zipf", True): figures,
            ("bare", "zipf", False): np.array([[120.0, 0.1, 0.2]] * 2),
        }
    )
    assert _ratios(script, rows) == {
        "8 adapters, zipf, changing": [0.5, pytest.approx(2 / 3, rel=1e-4)],
        "8 adapters, zipf, changing, p99": [0.5, 1.0],
    }


@pytest.mark.parametrize("has_peer", [True, False])
def test_files_are_compared_with_pytorch_if_it_is_there(script, has_peer):
    sides = ("onnx", "pytorch") if has_peer else ("onnx",)
    seconds = {
        (side, what): [1.0 + len(sides) * (side == "pytorch")]
        for side in sides
        for what in ("one", "short", "long")
    }
    rows = script("deployment_speed").rows_of(["onnx"], seconds, (32, 128))
    assert [row["case"] for row in rows] == [
        "onnx, one text of 32 tokens",
        "onnx, 32 texts of 32 tokens",
        "onnx, 32 texts of 128 tokens",
    ]
    if has_peer:
        assert list(_ratios(script, rows).values()) == [[3.0]] * 3
    else:
        assert not any("theirs" in row for row in rows)


def test_rematerialized_steps_are_compared_with_others(script):
    row = script("peak_memory").rematerialized("lora", 2.0, 5.0)
    assert _ratios(script, [row]) == {"lora, `train.remat`": [2.5]}


def test_cases_of_a_packing_fill_rows(script):
    padding = script("padding")
    # 100 + 28, 64 + 64, and 128 fill three rows; 1 more needs another.
    lengths = np.array([64, 28, 128, 64, 100])
    assert padding.packed_padding(lengths) == 0
    lengths = np.append(lengths, 1)
    assert padding.packed_padding(lengths) == pytest.approx(127 / 512)
