"""Tests the bar on a terminal, and the lines elsewhere."""

import io

import pytest

from tf_adapters.common import progress_bar


def _done(total, updates, **options):
    with progress_bar.progress_bar(total, "training", **options) as bar:
        for count in updates:
            bar.set_description(f"step {bar.n + count}")
            bar.set_postfix({"accuracy": "0.5"})
            bar.update(count)
    return bar


def test_a_line_for_each_tenth(capsys):
    _done(3200, [1] * 3200)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("step 320: 10%, 320 of 3200, 00:00<")
    assert lines[-1].startswith("step 3200: 100%, 3200 of 3200")
    assert lines[-1].endswith("ex/s, accuracy=0.5")


def test_a_loop_of_few_steps_has_a_line_for_each(capsys):
    _done(3, [1, 1, 1])
    percents = [33, 67, 100]
    lines = capsys.readouterr().err.splitlines()
    for line, percent in zip(lines, percents, strict=True):
        assert f": {percent}%," in line


def test_what_an_earlier_process_did_is_not_told_again(capsys):
    bar = _done(100, [5] * 10, initial=50)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        f"step {n}" for n in (60, 70, 80, 90, 100)
    ]
    assert bar.n == 100


def test_a_short_loop_says_nothing_where_it_may_wait(capsys):
    _done(100, [1] * 100, delay=60.0)
    _done(0, [])
    assert not capsys.readouterr().err


def test_a_long_loop_that_may_wait_shows_the_tenths_after(capsys, monkeypatch):
    now = iter(range(1000))
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    _done(10, [1] * 10, delay=4.0)
    assert len(capsys.readouterr().err.splitlines()) == 7


def test_one_long_batch_has_no_progress_to_follow(capsys, monkeypatch):
    now = iter(range(0, 1000, 100))
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    _done(1, [1], delay=4.0)
    assert not capsys.readouterr().err


class _Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("description", ["training", None])
def test_a_terminal_has_a_bar(monkeypatch, description):
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress_bar.progress_bar(4, description) as bar:
        bar.update(4)
    text = terminal.getvalue()
    assert ("4/4" in text and "\r" in text) == bool(description)
    assert bool(text) == bool(description)


def test_no_description_shows_nothing(capsys):
    with progress_bar.progress_bar(4, None) as bar:
        bar.update(4)
    assert not capsys.readouterr().err
