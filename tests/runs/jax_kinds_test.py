"""Tests that kinds of runs end the same with JAX as with TensorFlow."""

import json
import os
from pathlib import Path
import re
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.runs import backend_runs

pytestmark = [pytest.mark.integration, pytest.mark.slow]
pytest.importorskip("jax")

# Weights without a gradient in exact arithmetic, whose rounding errors Adam
# makes large: attention's scores and span's logits are compared with each
# other, and a number that is added to all of them changes nothing.
NO_GRADIENT = {"multitask": r"key.*bias", "spans": r"head/bias|norm/beta"}


@pytest.fixture(scope="module", name="data_dir")
def _data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    backend_runs.write_data(folder)
    return folder


@pytest.fixture(scope="module")
def of_tensorflow(data_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tensorflow")
    backend_runs.run("tensorflow", "one_device", folder, data_dir)
    return folder


@pytest.fixture(
    scope="module",
    params=[("one_device", 1), ("mirrored", 8)],
    ids=["one", "eight"],
)
def of_jax(request, data_dir, tmp_path_factory):
    strategy, devices = request.param
    folder = tmp_path_factory.mktemp("jax")
    program = (sys.executable, "-m", "tests.runs.backend_runs")
    subprocess.run(
        [*program, "jax", strategy, folder, data_dir],
        cwd=Path(__file__).parents[2],
        env={
            **os.environ,
            "KERAS_BACKEND": "jax",
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        },
        check=True,
    )
    return folder


def _tensors(folder):
    """Returns the weights of all runs in a folder, by folder and name."""
    return {
        f"{_without_hashes(path.relative_to(folder).parent)}:{name}": value
        for path in folder.rglob("*.safetensors")
        for name, value in load_file(path).items()
        if "checkpoints" not in path.parts
    }


def _without_hashes(path):
    """Returns a path without hashes of settings, as the backend is one."""
    return re.sub(r"\b[0-9a-f]{10}\b", "hash", str(path))


def _numbers(results):
    """Returns the metrics in a `result.json`, in a dict by their path."""
    if isinstance(results, int | float):
        return {"": results}
    return {
        f"{key}/{path}": value
        for key, inner in results.items()
        for path, value in _numbers(inner).items()
    }


@pytest.mark.parametrize("kind", backend_runs.KINDS)
def test_it_ends_the_same(of_tensorflow, of_jax, kind):
    expected, found = (
        _tensors(folder / kind) for folder in (of_tensorflow, of_jax)
    )
    assert found.keys() == expected.keys() and len(found) > 4
    for name, value in expected.items():
        if re.search(NO_GRADIENT.get(kind, "$^"), name):
            continue
        np.testing.assert_allclose(
            found[name], value, rtol=0, atol=2e-5, err_msg=name
        )
    results = [
        json.loads((folder / kind / "run/result.json").read_text())
        for folder in (of_tensorflow, of_jax)
    ]
    assert "jax" in results[1]["versions"]
    for key in ("validation", "test", "before", "best_step", "steps"):
        expected, found = (_numbers(result.get(key, {})) for result in results)
        assert found == pytest.approx(expected, abs=2e-5), key
