"""Tests that bad input gives a clear error, a counted warning or no effect.

The table is in tests/bad_input, and the one in docs/reliability.md is made
from it: `python -m tests.bad_input.table`.
"""

import logging

import pytest

from tests.bad_input import table
from tests.bad_input.space import ROWS
from tests.bad_input.space import Space

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run, which no case changes."""
    folder = tmp_path_factory.mktemp("bad_input")
    space = Space(folder, None, _NothingSaid(), _NothingSaid())
    assert space.train(test__jsonl=ROWS[:3]).status == 0
    return folder / "run"


class _NothingSaid:
    """Replaces fixtures that live for one test only."""

    out = err = ""
    records = ()

    def readouterr(self):
        return self

    def clear(self):
        pass


@pytest.fixture
def space(tmp_path, run, capsys, caplog):
    with caplog.at_level(logging.WARNING):
        yield Space(tmp_path, run, capsys, caplog)


# These train or export, which takes many seconds.
_SLOW = ("a disk that is full", "empty texts, NUL", "NaN in the loss")


def _marked(case):
    marks = [pytest.mark.slow] if case.given.startswith(_SLOW) else []
    return pytest.param(case, id=case.given, marks=marks)


@pytest.mark.parametrize("case", [_marked(case) for case in table.CASES])
def test_bad_input(case, space):
    outcome = case.do(space)
    assert outcome.status == (1 if case.outcome == "error" else 0), outcome.said
    if case.outcome != "result":
        assert case.then in outcome.said
    assert "Traceback" not in outcome.said


def test_the_document_has_this_table():
    assert table.DOCUMENT.read_text(encoding="utf-8") == table.updated(), (
        "Run `python -m tests.bad_input.table`."
    )
