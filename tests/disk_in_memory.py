"""Commands that see disks in memory, which tests make as small as they need."""

import shutil
import subprocess

import pytest

# Comes before a command, which then may mount disks that only it can see.
MAY_MOUNT = ["unshare", "--user", "--map-root-user", "--mount"]


def _can_mount():
    if shutil.which(MAY_MOUNT[0]) is None:
        return False
    command = [*MAY_MOUNT, "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(command, capture_output=True).returncode == 0


needed = pytest.mark.skipif(not _can_mount(), reason="may not make a disk")
