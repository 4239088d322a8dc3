"""Tests that the fused attention of Keras equals our own, and when it is used.

The kernels themselves need a GPU. Elsewhere, Keras computes the same operation
without them.
"""

import os
from pathlib import Path
import subprocess
import sys

import keras
import numpy as np
import pytest

from tests.layers import attention_inputs
from tf_adapters.layers import attention
from tf_adapters.layers.stateless_seeds import StatelessSeeds


def _of_jax_on_a_gpu(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    devices = ["gpu:0", "gpu:1"]
    monkeypatch.setattr(keras.distribution, "list_devices", lambda: devices)


def _tokens(length=6, dtype="bfloat16"):
    return keras.ops.ones((2, length, 16), dtype)


def test_it_is_our_attention():
    found, expected = attention_inputs.outputs()
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert np.ptp(expected, axis=1).max() > 0.1


@pytest.mark.slow
def test_it_is_our_attention_on_jax_with_its_gradient():
    pytest.importorskip("jax")
    done = subprocess.run(
        [sys.executable, "-m", "tests.layers.attention_inputs"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    outputs, gradients, in_half = map(float, done.stdout.split())
    assert outputs < 2e-6 and gradients < 1e-5
    # A weight in bfloat16 has eight bits.
    assert 0 < in_half < 2e-2


def test_it_is_used_in_half_precision_on_a_gpu_of_jax(monkeypatch):
    assert not attention.has_fused_kernel(_tokens(), _tokens())
    _of_jax_on_a_gpu(monkeypatch)
    assert attention.has_fused_kernel(_tokens(), _tokens())
    for query, key in (
        (_tokens(dtype="float32"), _tokens(dtype="float32")),
        (_tokens(1), _tokens()),
        (_tokens(), _tokens(7)),
    ):
        assert not attention.has_fused_kernel(query, key)
    keras.config.disable_flash_attention()
    try:
        assert not attention.has_fused_kernel(_tokens(), _tokens())
    finally:
        keras.config.enable_flash_attention()
    devices = ["tpu:0"]
    monkeypatch.setattr(keras.distribution, "list_devices", lambda: devices)
    assert not attention.has_fused_kernel(_tokens(), _tokens())


@pytest.mark.parametrize(
    ("rate", "seeds", "bias", "is_used"),
    [
        (0.1, None, None, True),
        (0.0, StatelessSeeds, None, True),
        (0.1, StatelessSeeds, None, False),
        (0.0, None, np.zeros((1, 1, 6, 6), "float32"), False),
    ],
)
def test_dropout_and_a_bias_need_the_weights(
    monkeypatch, rate, seeds, bias, is_used
):
    used = []
    monkeypatch.setattr(attention, "has_fused_kernel", lambda *_: True)
    monkeypatch.setattr(
        attention, "fused_attention", lambda *arguments: used.append(arguments)
    )
    x = _tokens(dtype="float32")
    seeds = seeds and seeds(keras.ops.convert_to_tensor([1, 2], "int32"))
    attention.attention(x, x, x, 2, np.ones((2, 6)), rate, seeds, bias)
    assert bool(used) == is_used
