"""Tests that the declared mutants match the code; `run.py` runs them."""

import collections
from pathlib import Path
import re

import pytest

from tests.mutants import run

MUTANTS = run.read_mutants()
each_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)


def test_names_are_all_different():
    names = {mutant.name for mutant in MUTANTS}
    assert len(names) == len(MUTANTS)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", n) for n in names)


def test_every_folder_of_the_package_has_two():
    counts = collections.Counter(Path(m.file).parts[1] for m in MUTANTS)
    package = run.ROOT / run.PACKAGE
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    assert set(counts) == folders
    assert min(counts.values()) >= 2


@each_mutant
def test_it_can_be_applied(mutant):
    text = (run.ROOT / mutant.file).read_text(encoding="utf-8")
    changed = mutant.apply(text)
    assert "\n" not in mutant.old + mutant.new
    compile(changed, mutant.file, "exec")


@each_mutant
def test_its_tests_are_there(mutant):
    for selection in mutant.tests:
        path, *name = re.sub(r"\[.*", "", selection).split("::")
        text = (run.ROOT / path).read_text(encoding="utf-8")
        assert all(f"\ndef {one}(" in text for one in name), selection


@pytest.mark.parametrize(
    ("old", "new"), [("gone", "x"), ("twice", "x"), ("once", "once")]
)
def test_what_cannot_be_applied_is_an_error(old, new):
    mutant = run.Mutant("name", "file.py", old, new, ())
    with pytest.raises(ValueError, match=r"`old` is in file.py \d times"):
        mutant.apply("twice, twice, once")


@pytest.mark.parametrize(
    ("status", "failed", "said"),
    [
        (1, "a_test.py::test_b", "found"),
        (0, "", "MISSED"),
        (1, "", "ERROR, status 1: last"),
        (5, "", "ERROR, status 5: last"),
        (-14, "", "ERROR, status -14: last"),
    ],
)
def test_verdicts(status, failed, said):
    outcome = run.Outcome(status, failed, "first\nlast\n", 1.0)
    assert run.verdict(outcome) == said
