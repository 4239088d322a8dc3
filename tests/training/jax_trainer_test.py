"""Tests that JAX trains the same as TensorFlow, on one and on eight devices."""

import os
from pathlib import Path
import subprocess
import sys

import numpy as np
import pytest

from tests.training import backend_program
from tests.training import single_steps

pytestmark = [pytest.mark.integration, pytest.mark.slow]
pytest.importorskip("jax")

# Their losses compare outputs, so that adding a number to all of them changes
# nothing. The gradients of biases are rounding errors, which Adam makes large.
COMPARING = ("span", "choice")
NAMES = (*backend_program.CASES, *single_steps.HEADS)


@pytest.fixture(scope="module")
def of_tensorflow():
    return {
        name: backend_program.train_case(name, "one_device") for name in NAMES
    }


@pytest.fixture(
    scope="module",
    params=[("one_device", 1), ("mirrored", 8)],
    ids=["one", "eight"],
)
def of_jax(request, tmp_path_factory):
    """Returns what all cases came to, and the number of devices."""
    strategy, devices = request.param
    path = tmp_path_factory.mktemp("jax") / "found.npz"
    subprocess.run(
        [
            *(sys.executable, "-m", "tests.training.backend_program"),
            *(path, strategy, *NAMES),
        ],
        cwd=Path(__file__).parents[2],
        env={
            **os.environ,
            "KERAS_BACKEND": "jax",
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        },
        check=True,
    )
    found = {name: {} for name in NAMES}
    for key, value in np.load(path).items():
        case, _, name = key.partition(":")
        found[case][name] = value
    return found, devices


@pytest.mark.parametrize("case", backend_program.CASES)
def test_it_equals_tensorflow(of_tensorflow, of_jax, case):
    found, devices = of_jax
    expected, received = of_tensorflow[case], found[case]
    assert received["replicas"] == devices
    assert expected["losses"][0] != expected["losses"][-1]
    assert received["metric"] == expected["metric"]
    names = [key for key in expected if key.startswith("weights/")]
    assert len(names) > 2
    for name in ("losses", "outputs", *names):
        # Changes no output: its gradients are rounding errors, too.
        if name.endswith("/key/bias"):
            continue
        np.testing.assert_allclose(
            received[name], expected[name], rtol=0, atol=2e-5, err_msg=name
        )


@pytest.mark.parametrize("kind", single_steps.HEADS)
def test_each_kind_of_output_equals_tensorflow(of_tensorflow, of_jax, kind):
    found, _ = of_jax
    expected, received = of_tensorflow[kind], found[kind]
    assert received.keys() == expected.keys() and len(expected) > 2
    assert np.abs(expected["losses"]).min() > 1e-2
    for name, values in expected.items():
        if kind in COMPARING and name.endswith(("/bias", "layer_norm/beta")):
            continue
        np.testing.assert_allclose(
            received[name], values, rtol=0, atol=2e-5, err_msg=name
        )


@pytest.mark.parametrize(
    ("case", "programs"), [("houlsby", 1), ("fixed", 2), ("drop", 2)]
)
def test_each_shape_is_compiled_once(of_jax, case, programs):
    """Lengths 6 and 12, or no adapters in 0 and 1 blocks, in two epochs."""
    found, _ = of_jax
    assert found[case]["compilations"] == programs
