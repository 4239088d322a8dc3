"""Tests that damaged files are read rightly or refused; see `run.py`."""

import functools
import subprocess
import sys
import tempfile

import pytest

from tests.fuzz import campaign
from tests.fuzz import damage as damage_lib
from tests.fuzz import outcomes as outcomes_lib
from tests.fuzz import table
from tests.fuzz import trial
from tests.fuzz.reader import Reader
from tests.fuzz.readers import READERS

pytestmark = pytest.mark.integration
KEPT = sorted(campaign.CASES.glob("*/*.json"))


@functools.cache
def _folder(name):
    scratch = tempfile.TemporaryDirectory()
    return trial.Folder(READERS[name], campaign.Path(scratch.name)), scratch


@pytest.mark.parametrize(
    "path", KEPT, ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_an_input_that_was_a_fault_is_none(path):
    name, damages = damage_lib.from_json(path.read_text())
    folder, _ = _folder(name)
    folder.read(damages)


@pytest.mark.slow
def test_new_inputs_have_no_faults(tmp_path, record_property):
    """The inputs are others than those of `make fuzz`."""
    inputs = 40
    record_property("faults", inputs * len(READERS))
    command = [sys.executable, "-m", "tests.fuzz.run", "--seed=2"]
    command += [f"--inputs={inputs}", "--seconds=90", f"--folder={tmp_path}"]
    done = subprocess.run(
        command, cwd=table.DOCUMENT.parents[1], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("0 faults") == len(READERS)


class _Wrong:
    """A reader that fails in every way that is a fault."""

    def __init__(self, answer):
        self.answer = answer

    def __call__(self, folder):
        content = (folder / "a.json").read_bytes()
        return content if content == b"[1]" else self.answer()


def _overflow():
    raise OverflowError("too large")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (_overflow, "OverflowError: too large"),
        (lambda: "other", "is not that of the undamaged files"),
    ],
)
def test_a_fault_is_found(tmp_path, answer, message):
    make = lambda folder: (folder / "a.json").write_bytes(b"[1]")  # noqa: E731
    reader = Reader(make, _Wrong(answer), sealed=("a.json",))
    folder = trial.Folder(reader, tmp_path)
    damages = [damage_lib.Damage("a.json", "content", b"[2]")]
    with pytest.raises(trial.FaultError, match=message):
        folder.read(damages)
    # The folder is whole again.
    assert folder.read([damage_lib.Damage("a.json", "content", b"[1]")])


def test_a_stopped_campaign_goes_on(tmp_path):
    path = tmp_path / "0.txt"
    stopped = outcomes_lib.Outcomes(path)
    for number, outcome in enumerate((b"+", b"-", b"!", b"+")):
        stopped.note(number, outcome)
    stopped.begin(4)
    outcomes = outcomes_lib.Outcomes(path)
    assert outcomes.under_way() == 4
    assert outcomes.left(7) == [2, 4, 5, 6]
    outcomes.note(2, outcomes_lib.REFUSED)
    assert outcomes.left(7) == [4, 5, 6]
    assert outcomes.count() == outcomes_lib.Count(4, 2, 2, 0)


def test_the_table_is_of_readers():
    """`python -m tests.fuzz.run --write` writes it."""
    written = table.written()
    assert written.keys() <= READERS.keys()
    assert len(written) > 40
