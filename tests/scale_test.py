"""Compares the formulas of docs/scale.md with what was measured."""

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
MINILM = (6, 384)


@pytest.fixture
def formulas(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("scale_formulas")


@pytest.fixture
def points(formulas):
    """Returns a function from a kind to the committed points, by size."""
    scale = importlib.import_module("scale")
    found = scale.measurements.read(scale.RESULTS)
    return lambda what: scale.points_of(found, what)


def test_operations_of_an_encoder_are_those_of_the_graph(formulas, points):
    counted = points("operations")
    assert len(counted) == 4
    for point in counted:
        each = formulas.read_once_operations(*MINILM, point["size"])
        assert point["operations"] == pytest.approx(32 * each, rel=0.01)


def test_operations_of_adapters_are_those_of_the_graph(formulas, points):
    plain = {p["size"]: p["operations"] for p in points("operations")}
    for point in points("operations with adapters"):
        more = point["operations"] - plain[point["size"]]
        each = formulas.adapter_operations(*MINILM, 64, point["size"])
        assert more == pytest.approx(32 * each, rel=0.01)


def test_operations_of_a_fusion_are_those_of_the_graph(formulas, points):
    plain = {p["size"]: p["operations"] for p in points("operations")}
    counted = points("operations with members")
    assert [point["size"] for point in counted] == [1, 2, 4, 8, 16]
    for point in counted:
        more = point["operations"] - plain[128]
        each = formulas.fusion_operations(*MINILM, 24, point["size"], 128, 32)
        assert more == pytest.approx(each, rel=0.02)


def test_bytes_of_a_bank_are_those_of_its_adapters(formulas, points):
    small, *_, large = points("adapters")
    more = 1e6 * (large["megabytes"] - small["megabytes"])
    each = formulas.adapter_bytes(*MINILM, 64)
    count = large["size"] - small["size"]
    assert more == pytest.approx(count * each, rel=0.02)


def test_a_rate_predicts_the_step_of_a_larger_encoder(formulas, points):
    seconds = [point["processor_seconds"] for point in points("step")]
    ratio = formulas.training_operations(12, 768, 128)
    ratio /= formulas.training_operations(*MINILM, 128)
    assert 0.5 < seconds[1] / seconds[0] / ratio < 1.5


def test_the_memory_of_a_stream_does_not_grow(points):
    memory = [point["megabytes"] for point in points("stream")]
    assert len(memory) > 2 and max(memory) < 1.1 * min(memory)


@pytest.mark.parametrize("what", ["stream", "run"])
def test_texts_take_time_in_proportion_to_their_number(points, what):
    *_, first, second, third = points(what)

    def each_more(few, many):
        """Returns the time of each further text."""
        seconds = many["processor_seconds"] - few["processor_seconds"]
        return seconds / (many["size"] - few["size"])

    assert 0.5 < each_more(second, third) / each_more(first, second) < 2


def test_a_fusion_costs_little_for_another_member(points):
    seconds = [min(p["processor_seconds"]) for p in points("members")]
    assert seconds[-1] < 2 * seconds[0]


def test_an_exponent_is_found_with_its_interval(formulas):
    sizes = [1, 10, 100, 1000]
    slope, half = formulas.exponent(sizes, [3 * n**1.5 for n in sizes])
    assert slope == pytest.approx(1.5) and half < 1e-6
    slope, half = formulas.exponent(sizes, [2, 10, 200, 1000])
    assert abs(slope - 1) < half < 1
    assert formulas.exponent_between([10, 40], [3, 6]) == pytest.approx(0.5)


def test_machines_are_counted_for_the_busiest_seconds(formulas):
    # 86.4 million a day are 1,000 a second, at the peak 3,000.
    assert formulas.machines(86_400_000, 5_000) == 1
    assert formulas.machines(86_400_000, 4_999) == 2


def test_the_page_has_the_tables_of_the_committed_points(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    scale = importlib.import_module("scale")
    page = scale.PAGE.read_text("utf-8")
    points = scale.measurements.read(scale.RESULTS)
    assert scale.filled(page, points) == page
