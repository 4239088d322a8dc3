"""Tests whole runs of the command with `--backend=jax`."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest

from tests.runs import whole_runs

pytestmark = [pytest.mark.integration, pytest.mark.slow]
pytest.importorskip("jax")

# Backends draw different dropout masks.
WITHOUT_DROPOUT = (
    "--params_override=train.encoder_dropout=false,head.dropout_rate=0",
)
JAX = ("--backend=jax",)
EIGHT = (*JAX, "--distribution_strategy=mirrored")


def _start(folder, *flags, devices=1):
    count = f"--xla_force_host_platform_device_count={devices}"
    return subprocess.Popen(
        [*whole_runs.command(folder), *flags],
        env={**os.environ, "XLA_FLAGS": count},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _run(folder, *flags, devices=1):
    process = _start(folder, *flags, devices=devices)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return output


def _result(folder):
    return json.loads((folder / "result.json").read_text())


@pytest.fixture(scope="module")
def of_tensorflow(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tensorflow")
    _run(folder, *WITHOUT_DROPOUT)
    return folder


@pytest.mark.parametrize(
    ("flags", "devices"), [(JAX, 1), (EIGHT, 8)], ids=["one", "eight"]
)
def test_a_run_equals_that_of_tensorflow(
    tmp_path, of_tensorflow, flags, devices
):
    output = _run(tmp_path, *flags, *WITHOUT_DROPOUT, devices=devices)
    assert "XLA compiles the training step once for each" in output
    (weights, records, *_), (wanted, wanted_records, *_) = map(
        whole_runs.left, (tmp_path, of_tensorflow)
    )
    assert weights.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_allclose(
            weights[name], array, rtol=0, atol=2e-5, err_msg=name
        )
    assert len(records) == len(wanted_records)
    for record, expected in zip(records, wanted_records, strict=True):
        assert record.get("validation") == expected.get("validation")
        assert record["step"] == expected["step"]
        difference = record.get("loss", 0) - expected.get("loss", 0)
        assert abs(difference) < 2e-5
    result, expected = _result(tmp_path), _result(of_tensorflow)
    for key in ("validation", "test", "best_step", "steps", "examples"):
        assert result[key] == expected[key]
    assert result["data_fingerprint"] == expected["data_fingerprint"]
    assert "jax" in result["versions"] and "jax" not in expected["versions"]


def test_a_killed_run_ends_like_an_undisturbed_one(tmp_path):
    """With dropout: its masks depend on the seed and the step only."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    _run(whole, *JAX)
    process = _start(killed, *JAX)
    while whole_runs.steps_done(killed) < 8:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (killed / "result.json").exists()
    _run(killed, *JAX)
    whole_runs.check_equal(killed, whole)


def test_more_devices_than_rows(tmp_path):
    process = _start(
        *(tmp_path, *EIGHT, "--batch_size=4"),
        devices=8,
    )
    output, _ = process.communicate()
    assert process.returncode == 1
    assert "A batch of 4 rows cannot be split over 8 devices." in output
    assert "Traceback" not in output
