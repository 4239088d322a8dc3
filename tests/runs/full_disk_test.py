"""Tests that a run on a full disk resumes when there is more space."""

import os
import subprocess

import pytest

from tests import disk_in_memory
from tests.runs import whole_runs

# The same command twice on a disk in memory, which becomes larger in between.
_SCRIPT = """
disk=$1 size=$2 left=$3
shift 3
mount -t tmpfs -o size="$size" none "$disk" || exit 3
"$@"
status=$?
mount -o remount,size=100m "$disk" || exit 3
echo "first status: $status"
"$@" && cp -r "$disk/run" "$left"
"""


pytestmark = [pytest.mark.slow, disk_in_memory.needed]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that has space."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    subprocess.run(whole_runs.command(folder), check=True, cwd=whole_runs.ROOT)
    return folder


# Full at once; at an early and at a later checkpoint.
@pytest.mark.parametrize("size", ["8k", "100k", "350k"])
def test_a_run_goes_on_after_a_full_disk(whole, tmp_path, size):
    disk, left = tmp_path / "disk", tmp_path / "left"
    disk.mkdir()
    command = whole_runs.command(disk / "run")
    with_disk = [*disk_in_memory.MAY_MOUNT, "sh", "-c", _SCRIPT, "sh"]
    found = subprocess.run(
        [*with_disk, disk, size, left, *command],
        cwd=whole_runs.ROOT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
    )
    print(found.stdout, found.stderr)
    assert found.returncode == 0
    assert "first status: 1\n" in found.stdout
    assert "No space left on device" in found.stderr
    assert "Free some space" in found.stderr
    assert "Traceback" not in found.stderr
    whole_runs.check_equal(left, whole)
