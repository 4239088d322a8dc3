"""Tests that one, two and four replicas of one machine train the same."""

import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.runs import whole_runs


def _trained(strategy, devices, path):
    module = "tests.runs.worker_program"
    command = [sys.executable, "-m", module, strategy, str(path)]
    command.append(f"--devices={devices}")
    subprocess.run(command, check=True, cwd=whole_runs.ROOT)
    return load_file(path)


@pytest.mark.slow
def test_replicas_share_each_batch(tmp_path):
    """The last batch has five examples: two of four replicas get only one."""
    alone = _trained("one_device", 1, tmp_path / "1")
    assert len(alone["losses"]) == 4 and np.ptp(alone["losses"]) > 1e-2
    for devices in (2, 4):
        shared = _trained("mirrored", devices, tmp_path / str(devices))
        assert shared.keys() == alone.keys()
        for name, value in alone.items():
            np.testing.assert_allclose(
                shared[name], value, rtol=2e-5, atol=2e-5, err_msg=name
            )
