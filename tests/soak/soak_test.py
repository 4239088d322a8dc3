"""Tests that disturbed runs end like undisturbed ones; see `run.py`."""

import subprocess
import sys

import pytest

from tests.soak import table

pytestmark = pytest.mark.slow


def test_disturbed_runs_end_the_same(tmp_path, record_property):
    """One of each kind, others than those of `make soak`."""
    record_property("faults", 5)
    command = [sys.executable, "-m", "tests.soak.run", "--seed=1"]
    command += ["--trials=1", f"--folder={tmp_path}"]
    for _ in range(2):  # The second time, nothing is left to do.
        done = subprocess.run(
            command,
            cwd=table.DOCUMENT.parents[1],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        assert (tmp_path / "trials.jsonl").read_text().count("\n") == 5
    assert ": the same (" not in done.stdout
