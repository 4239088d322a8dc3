"""Tests what `make bench` keeps, compares and writes."""

import dataclasses
import importlib
import json
from pathlib import Path
import sys
import types

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
_SCRIPT = """
import json, sys
output = sys.argv[-1].removeprefix("--output=")
row = {"case": "a step", "unit": "s", "more_is_better": False}
row |= {"ours": [2.0, 2.1], "theirs": [4.0, 4.2], "compared_with": "them"}
open(output, "a").write(json.dumps(row) + chr(10))
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """The module, with one benchmark that takes no time, and its own files."""
    monkeypatch.syspath_prepend(FOLDER)
    module = importlib.import_module("bench")
    suite = importlib.import_module("suite")
    (tmp_path / "quick.py").write_text(_SCRIPT)
    quick = suite.Benchmark("Quick", str(tmp_path / "quick.py"), ("0",))
    monkeypatch.setitem(module.BENCHMARKS, "quick", quick)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "bench.jsonl")
    monkeypatch.setattr(module, "PAGE", tmp_path / "benchmarks.md")
    monkeypatch.setattr(module, "committed_lines", list)
    monkeypatch.setattr(module.machine, "busy_share", lambda: 0.5)
    # Not that of this checkout, which can have changes.
    monkeypatch.setattr(module.machine, "commit", lambda root: "this")
    return module


@pytest.fixture
def peer(bench, monkeypatch, tmp_path):
    """A Python that says it has PyTorch's packages, which `quick` takes."""
    options = ("0", "--peer_python={peer_python}")
    quick = dataclasses.replace(bench.BENCHMARKS["quick"], options=options)
    monkeypatch.setitem(bench.BENCHMARKS, "quick", quick)
    found = dict.fromkeys(("torch", "transformers", "adapters", "peft"), "1.0")
    return _program(tmp_path / "peer", f"echo '{json.dumps(found)}'")


def _program(path, command):
    """Writes a shell script, and returns its path as text."""
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)
    return str(path)


def _arguments(**changes):
    defaults = {"data_dir": None, "peer_python": None, "again": False}
    return types.SimpleNamespace(**{**defaults, **changes})


def _row(ours, theirs=None, more_is_better=False):
    found = {"case": "a step", "ours": ours, "more_is_better": more_is_better}
    return found if theirs is None else {**found, "theirs": theirs}


@pytest.mark.parametrize(
    ("now", "before", "worse"),
    [
        (_row([2.0, 2.2]), _row([1.8, 1.9]), True),
        (_row([1.8, 1.9]), _row([2.0, 2.2]), False),
        # The ranges overlap.
        (_row([1.85, 2.2]), _row([1.8, 1.9]), False),
        # Without spread, but by less than 2%.
        (_row([2.02]), _row([2.0]), False),
        (_row([2.1]), _row([2.0]), True),
        (
            _row([90], more_is_better=True),
            _row([99], more_is_better=True),
            True,
        ),
        (
            _row([99], more_is_better=True),
            _row([90], more_is_better=True),
            False,
        ),
        # The machine was slower, for both sides.
        (_row([4.0, 4.4], [8.0, 8.8]), _row([1.8, 1.9], [3.6, 3.8]), False),
        (_row([2.0, 2.1], [3.0, 3.0]), _row([2.0, 2.1], [4.0, 4.1]), True),
        (_row([4.0]), _row([2.0], [2.0]), False),
    ],
)
def test_worse_is_beyond_both_spreads(bench, now, before, worse):
    assert bench.is_worse(now, before) == worse


def test_a_stopped_run_is_resumed(bench, monkeypatch, capsys):
    assert bench.run(["quick"], _arguments())
    (line,) = bench.measurements.read(bench.RESULTS)
    assert line["rows"][0]["ours"] == [2.0, 2.1]
    assert line["benchmark"] == "quick" and "before" not in line
    page = bench.PAGE.read_text()
    assert "| a step | s | 2.05 (2-2.1) | them | 4.1 (4-4.2) | 2.00 (" in page
    assert "Other programs used 50% of the cores before the start. **So" in page
    capsys.readouterr()
    assert bench.run(["quick"], _arguments())
    assert "has been measured at" in capsys.readouterr().out
    # Of another commit, it is measured again, and replaced.
    monkeypatch.setattr(bench.machine, "commit", lambda root: "another")
    assert bench.run(["quick"], _arguments())
    (line,) = bench.measurements.read(bench.RESULTS)
    assert line["commit"] == "another"


def test_a_run_names_what_got_worse(bench, monkeypatch, capsys):
    assert bench.run(["quick"], _arguments())
    (line,) = bench.measurements.read(bench.RESULTS)
    line["rows"][0]["theirs"] = [8.0, 8.4]
    line["commit"] = "before"
    monkeypatch.setattr(bench, "committed_lines", lambda: [line])
    assert bench.run(["quick"], _arguments(again=True))
    assert "Worse than at before: a step." in capsys.readouterr().out
    assert "Worse than at before: a step." in bench.PAGE.read_text()


def test_uncommitted_changes_are_measured_again(bench, monkeypatch, capsys):
    monkeypatch.setattr(bench.machine, "commit", lambda root: "this-changed")
    for _ in range(2):
        assert bench.run(["quick"], _arguments())
        output = capsys.readouterr().out
        assert "quick: Quick" in output and "has been" not in output


def test_a_run_names_what_it_cannot_compare(bench, monkeypatch, capsys):
    assert bench.run(["quick"], _arguments())
    (line,) = bench.measurements.read(bench.RESULTS)
    row = line["rows"][0]
    del row["theirs"]
    line["rows"].append({**row, "case": "another"})
    line["commit"] = "before"
    monkeypatch.setattr(bench, "committed_lines", lambda: [line])
    assert bench.run(["quick"], _arguments(again=True))
    words = (
        "Nothing that can be compared is worse than at before. "
        "Cannot be compared: a step; another."
    )
    assert words in capsys.readouterr().out
    assert words in bench.PAGE.read_text()


def test_cases_that_either_line_lacks_cannot_be_compared(bench):
    def line(*rows):
        return {"rows": [{**row, "case": case} for case, row in rows]}

    ours, both = _row([1.0]), _row([1.0], [2.0])
    new = line(("a", ours), ("b", both), ("c", both), ("d", ours))
    old = line(("a", ours), ("b", both), ("c", ours), ("e", ours))
    assert bench.not_compared(new, old) == ["c", "d", "e"]
    assert bench.not_compared(old, new) == ["c", "e", "d"]


def test_rows_get_a_peer_at_the_same_commit(bench, peer, capsys):
    assert bench.run(["quick"], _arguments())
    assert bench.run(["quick"], _arguments(peer_python=peer))
    assert "has been measured" not in capsys.readouterr().out
    (line,) = bench.measurements.read(bench.RESULTS)
    assert line["versions"]["torch"] == "1.0"
    assert bench.run(["quick"], _arguments(peer_python=peer))
    assert "quick has been measured at this." in capsys.readouterr().out


@pytest.mark.parametrize("commit", ["another", "this-changed"])
def test_rows_with_a_peer_are_not_replaced_without(
    bench, peer, monkeypatch, capsys, commit
):
    assert bench.run(["quick"], _arguments(peer_python=peer))
    rows, page = bench.RESULTS.read_text(), bench.PAGE.read_text()
    monkeypatch.setattr(bench.machine, "commit", lambda root: commit)
    assert bench.run(["quick"], _arguments(again=True))
    output = capsys.readouterr().out
    assert "quick is left out, and its rows stay" in output
    assert "--peer_python (PEER=" in output
    assert (bench.RESULTS.read_text(), bench.PAGE.read_text()) == (rows, page)
    assert bench.run(["quick"], _arguments(peer_python=peer))
    (line,) = bench.measurements.read(bench.RESULTS)
    assert line["commit"] == commit


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (None, "peer does not run ("),
        ("exit 3", "peer does not run ("),
        ("echo hello", "peer does not run ("),
        ('echo \'{"torch": "1", "peft": "1"}\'', "`transformers`, `ad"),
        # Without the folder of packages.
        (f"exec '{sys.executable}' -I -S \"$@\"", "peer lacks `torch`, "),
    ],
)
def test_a_python_that_is_no_peer_is_refused_first(
    bench, tmp_path, capsys, command, words
):
    path = str(tmp_path / "peer")
    if command:
        _program(tmp_path / "peer", command)
    assert not bench.run(["quick"], _arguments(peer_python=path))
    output = capsys.readouterr().out
    assert words in output and "; see benchmarks/peers/README.md." in output
    assert output.count("\n") == 1
    assert not bench.RESULTS.exists()


def test_what_fails_or_lacks_something_stops_nothing(
    bench, monkeypatch, capsys
):
    quick = bench.BENCHMARKS["quick"]
    for name, changes in (
        ("fails", {"options": ("3",)}),
        ("peer", {"needs": ("peer_python",)}),
        ("data", {"needs": ("data_dir",)}),
        ("package", {"packages": ("no_such_package",)}),
    ):
        one = dataclasses.replace(quick, **changes)
        monkeypatch.setitem(bench.BENCHMARKS, name, one)
    names = ["fails", "peer", "data", "package", "quick"]
    assert not bench.run(names, _arguments(data_dir="/no/such/folder"))
    output = capsys.readouterr().out
    assert "fails ended with exit status 3" in output
    assert "peer is left out. It needs --peer_python." in output
    assert "data is left out. It needs data. There is no folder" in output
    assert "package is left out. It needs the package no_such_pack" in output
    (line,) = bench.measurements.read(bench.RESULTS)
    assert line["benchmark"] == "quick"


def test_a_goal_is_a_ratio_of_the_case(bench, monkeypatch):
    quick = bench.BENCHMARKS["quick"]
    for ratio, verdict in ((1.9, "1.90: reached"), (2.1, "2.10: missed")):
        one = dataclasses.replace(quick, goals=(("step", ratio),))
        monkeypatch.setitem(bench.BENCHMARKS, "quick", one)
        assert bench.run(["quick"], _arguments(again=True))
        assert verdict in bench.PAGE.read_text()


def test_a_busy_machine_is_noticed(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(FOLDER)
    machine = importlib.import_module("machine")
    # User, nice, system, idle, waiting for a disk, interrupts, stolen, guests.
    times = iter(["100 0 0 500 0 0 0 0 0 0", "130 20 5 645 100 0 0 0 9 9"])
    path = tmp_path / "stat"
    monkeypatch.setattr(machine, "_CPU_TIMES", path)
    monkeypatch.setattr(
        machine.time,
        "sleep",
        lambda _: path.write_text(f"cpu  {next(times)}\ncpu0 1\n"),
    )
    path.write_text(f"cpu  {next(times)}\ncpu0 1\n")
    # 55 of 300 ticks were used.
    assert machine.busy_share() == pytest.approx(55 / 300)


def test_the_committed_page_shows_the_committed_rows(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    page = importlib.import_module("bench_page")
    rows = importlib.import_module("measurements").read(
        FOLDER / "results" / "bench.jsonl"
    )
    text = (FOLDER.parent / "docs" / "benchmarks.md").read_text("utf-8")
    assert text == page.page(rows)
