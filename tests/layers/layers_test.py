"""Compares layers with the formulas of the papers in NumPy."""

import typing

from keras import ops
import numpy as np
import pytest

from tests import tiny
from tests.references import methods_numpy as reference
from tf_adapters.layers import Bottleneck
from tf_adapters.layers import HardConcreteGates
from tf_adapters.layers import TokenWeight
from tf_adapters.layers import activations
from tf_adapters.layers.attention import attention
from tf_adapters.layers.dense import dense
from tf_adapters.layers.normalization import layer_norm
from tf_adapters.layers.stateless_seeds import StatelessSeeds

WIDTH, UNITS = 8, 3
X = np.random.default_rng(1).normal(size=(2, 5, WIDTH)).astype("float32")


@pytest.mark.parametrize("activation", activations.ACTIVATIONS)
def test_bottleneck_is_the_papers(activation):
    layer = Bottleneck(UNITS, activation)
    layer.build(X.shape)
    tiny.randomize(layer.weights, scale=1.0)
    weights = tiny.values(layer.weights)
    expected = reference.bottleneck(X.astype("float64"), *weights, activation)
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(layer(X), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("missing", range(4))
def test_bottleneck_uses_each_weight(missing):
    layer = Bottleneck(UNITS)
    layer.build(X.shape)
    tiny.randomize(layer.weights, scale=1.0)
    whole = np.asarray(layer(X))
    layer.weights[missing].assign(np.zeros(layer.weights[missing].shape))
    assert np.abs(np.asarray(layer(X)) - whole).max() > 0.1


def test_initializations():
    for name, deviation in (("truncated_normal", 0.0088), ("normal", 0.01)):
        layer = Bottleneck(64, initialization=name, init_stddev=1e-2)
        layer.build((None, 256))
        kernels = np.asarray(layer.up_kernel), np.asarray(layer.down_kernel)
        for kernel in kernels:
            assert abs(kernel.std() / deviation - 1) < 0.05
        assert (np.abs(kernels[0]).max() > 2e-2) == (name == "normal")
    layer = Bottleneck(64, initialization="zero_up")
    layer.build((None, 256))
    assert np.abs(np.asarray(layer.down_kernel)).max() > 0.05
    assert not np.asarray(layer.up_kernel).any()


def test_layer_norm_is_the_formula():
    gamma, beta = np.random.default_rng(2).normal(size=(2, WIDTH))
    np.testing.assert_allclose(
        layer_norm(ops.convert_to_tensor(X), gamma, beta, 1e-5),
        reference.layer_norm(X.astype("float64"), gamma, beta, 1e-5),
        rtol=1e-5,
        atol=1e-5,
    )


def test_layer_norm_in_bfloat16_takes_its_statistics_in_float32():
    x = ops.cast(100 + X, "bfloat16")
    exact = layer_norm(
        ops.cast(x, "float32"), np.ones(WIDTH), np.zeros(WIDTH), 1e-5
    )
    half = layer_norm(x, np.ones(WIDTH), np.zeros(WIDTH), 1e-5)
    assert np.abs(np.asarray(ops.cast(half, "float32")) - exact).max() < 0.01


def test_dense_is_a_matrix_product():
    kernel, bias = np.ones((WIDTH, 2)), np.array([1.0, -1.0])
    expected = X.astype("float64") @ kernel + bias
    actual = dense(
        ops.convert_to_tensor(X), ops.convert_to_tensor(kernel), bias
    )
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


CONSTANTS = {"temperature": 2 / 3, "stretch_low": -0.1, "stretch_high": 1.1}
LOG_ALPHA = np.array([-5.0, -2.5, -2.0, 0.0, 1.0, 4.0])


def _gates(multiplier=1.0):
    gates = HardConcreteGates(
        LOG_ALPHA.shape, learning_rate_multiplier=multiplier, **CONSTANTS
    )
    gates.build()
    gates.scaled_log_alpha.assign(LOG_ALPHA / multiplier)
    return gates


@pytest.mark.parametrize("multiplier", [1.0, 100.0])
def test_deterministic_gates(multiplier):
    expected = reference.hard_concrete(LOG_ALPHA, None, 2 / 3, -0.1, 1.1)
    actual = np.asarray(_gates(multiplier).call())
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    assert (actual == 0).sum() == 2 and 0 < actual[3] < 1


def test_expected_share_is_the_share_that_sampling_gives():
    expected = [reference.expected_open(a, 2 / 3, -0.1, 1.1) for a in LOG_ALPHA]
    np.testing.assert_allclose(_gates().expected_open(), expected, atol=1e-4)
    many = HardConcreteGates((4000, len(LOG_ALPHA)), **CONSTANTS)
    many.build()
    many.scaled_log_alpha.assign(np.tile(LOG_ALPHA, (4000, 1)))
    drawn = np.asarray(many.call(StatelessSeeds([1, 2])))
    np.testing.assert_allclose((drawn > 0).mean(0), expected, atol=0.03)


def test_untrained_gates_are_open_with_probability_0_83():
    gates = HardConcreteGates((4,), **CONSTANTS)
    gates.build()
    np.testing.assert_allclose(gates.expected_open(), 0.8318, atol=1e-4)
    np.testing.assert_allclose(gates.call(), 0.5, atol=1e-6)


def test_gated_token_weight_is_the_product():
    layer = TokenWeight(WIDTH, gates=CONSTANTS)
    layer.build()
    tiny.randomize(layer.weights, scale=4.0)
    gates = np.asarray(layer.gates.call())
    assert 0 < (gates == 0).sum() < len(gates)
    expected = X @ (np.asarray(layer.kernel)[:, 0] * gates[:-1]) + (
        np.asarray(layer.bias) * gates[-1]
    )
    np.testing.assert_allclose(
        np.asarray(layer(X))[..., 0], expected, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"units": 0},
        {"units": 4, "init_stddev": 0},
        {"units": 4, "initialization": "ones"},
        {"units": 4, "activation": "swishy"},
    ],
)
def test_bottleneck_refuses_bad_arguments(arguments):
    with pytest.raises(ValueError, match="units|stddev|ones|swishy"):
        Bottleneck(**arguments)


def test_gates_refuse_a_stretch_that_cannot_close():
    with pytest.raises(ValueError, match="stretch_low=0"):
        HardConcreteGates((2,), stretch_low=0)
    with pytest.raises(ValueError, match="must be positive. Received: 0"):
        HardConcreteGates((2,), learning_rate_multiplier=0)


def test_the_type_of_activations_names_all_of_them():
    names = typing.get_args(activations.Activation)
    assert names == tuple(activations.ACTIVATIONS)


@pytest.mark.parametrize("activation", activations.ACTIVATIONS)
def test_an_activation_in_bfloat16_is_the_rounded_exact_one(activation):
    function = activations.get_activation(activation)
    x = ops.cast(np.linspace(-6, 6, 97), "bfloat16")
    exact = function(ops.cast(x, "float32"))
    half = ops.cast(function(x), "float32")
    # One rounding in the exact function's place, one of its slope. Where GELU
    # is nearly 0, erfc multiplies the rounding of its argument.
    least = 5e-4 if activation == "gelu" else 1e-30
    np.testing.assert_allclose(half, exact, rtol=2**-7, atol=least)


def test_attention_weights_in_bfloat16_are_the_rounded_exact_ones():
    """Equal scores over 200 tokens: each weight is 1/200, all of them 1."""
    query = key = ops.zeros((1, 200, 8), "bfloat16")
    value = ops.ones((1, 200, 8), "bfloat16")
    output = attention(query, key, value, 2, np.ones((1, 200), "int32"))
    np.testing.assert_allclose(ops.cast(output, "float32"), 1, atol=2**-7)


def test_attention_in_float16_is_that_in_float32():
    """In float16, -1e9 would be infinite and give NaN for real tokens."""
    generator = np.random.default_rng(2)
    query, key, value = generator.normal(size=(3, 2, 5, 8))
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    outputs = [
        np.asarray(
            attention(
                *(ops.convert_to_tensor(x, dtype) for x in (query, key, value)),
                num_heads=2,
                padding_mask=mask,
            )
        )
        for dtype in ("float16", "float32")
    ]
    np.testing.assert_allclose(*outputs, atol=5e-3)
