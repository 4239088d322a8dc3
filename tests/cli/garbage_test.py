"""Tests that a command leaves most garbage collection to its end."""

import os
from pathlib import Path
import subprocess
import sys

_ROOT = Path(__file__).parents[2]
_CODE = """
import atexit, gc
atexit.register(lambda: print(gc.get_freeze_count() > 0))  # The last to run.
from tf_adapters.cli import garbage
garbage.collect_less()
first = gc.get_stats()[0]["collections"]
kept = [[] for _ in range(50_000)]
print(gc.get_stats()[0]["collections"] - first)
kept += [[] for _ in range(100_000)]
print(gc.get_stats()[0]["collections"] - first > 0)
"""


def test_it_collects_after_many_objects_and_not_at_exit():
    done = subprocess.run(
        [sys.executable, "-c", _CODE],
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["0", "True", "True"]
