"""Compares the factorized fusion with the plain formula in NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.references import fusion_numpy as reference
from tests.references.methods_numpy import ACTIVATIONS
from tf_adapters.layers.adapter_fusion import AdapterFusion

WIDTH, UNITS = 8, 3
X = np.random.default_rng(1).normal(size=(2, 5, WIDTH)).astype("float32")


def _layer(num_adapters, value="dynamic", activation="relu"):
    layer = AdapterFusion(num_adapters, UNITS, activation, value)
    layer.build(X.shape)
    tiny.randomize(layer.weights, scale=0.5)
    return layer


def _adapters(layer):
    weights = [
        np.asarray(w, "float64")
        for w in (layer.down_kernel, layer.down_bias, layer.up_kernel)
    ]
    biases = np.asarray(layer.up_bias, "float64")
    for n in range(layer.num_adapters):
        part = slice(n * UNITS, (n + 1) * UNITS)
        down, bias, up = weights
        yield down[:, part], bias[part], up[part], biases[n]


def _expected(layer):
    value = np.eye(WIDTH)
    if layer.value == "dynamic":
        value = np.asarray(layer.value_kernel, "float64")
    return reference.fusion(
        X.reshape(-1, WIDTH).astype("float64"),
        list(_adapters(layer)),
        layer.activation,
        np.asarray(layer.query_kernel, "float64"),
        np.asarray(layer.query_bias, "float64"),
        np.asarray(layer.key_kernel, "float64"),
        value,
    )


@pytest.mark.parametrize("num_adapters", [1, 2, 5])
@pytest.mark.parametrize("value", ["dynamic", "static"])
@pytest.mark.parametrize("training", [False, True])
def test_factorized_is_the_plain_formula(num_adapters, value, training):
    layer = _layer(num_adapters, value)
    fused, weights = layer(X, training=training)
    expected, p = _expected(layer)
    assert np.abs(expected).max() > 1
    assert num_adapters == 1 or p.std() > 0.1
    np.testing.assert_allclose(
        np.reshape(fused, expected.shape), expected, rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(np.reshape(weights, p.shape), p, atol=1e-5)


def _outputs_and_gradients(layer, x, training):
    with tf.GradientTape() as tape:
        tape.watch(x)
        fused, weights = layer(x, training=training)
        loss = tf.reduce_sum(fused**2) + tf.reduce_sum(weights[..., 0])
    variables = [v.value for v in layer.trainable_weights]
    return fused, weights, *tape.gradient(loss, [x, *variables])


@pytest.mark.parametrize("value", ["dynamic", "static"])
@pytest.mark.parametrize("tokens", [1, 7, 40])
def test_one_order_of_the_products_is_as_good_as_the_other(tokens, value):
    """Tested in a graph, with few and many tokens, and in training."""
    layer = _layer(4, value)
    x = np.random.default_rng(2).normal(size=(1, tokens, WIDTH))
    inferred = tf.function(
        lambda x: _outputs_and_gradients(layer, x, training=False),
        input_signature=[tf.TensorSpec((None, None, WIDTH))],
    )
    found = inferred(tf.constant(x, "float32"))
    expected = _outputs_and_gradients(layer, tf.constant(x, "float32"), True)
    for one, other in zip(found, expected, strict=True):
        assert np.abs(other).max() > 1e-3
        np.testing.assert_allclose(
            one, other, atol=1e-5 * max(1, np.abs(other).max())
        )


def test_products_of_weights_only_where_tokens_are_many(monkeypatch):
    layer = _layer(4)
    orders = []
    for name in ("_weights_first", "_tokens_first"):
        order = getattr(layer, name)

        def spy(*arguments, name=name, order=order):
            orders.append(name)
            return order(*arguments)

        monkeypatch.setattr(layer, name, spy)
    layer(X[:, :1])
    layer(np.concatenate([X, X]))
    layer(X[:, :1], training=True)
    assert orders == ["_tokens_first", "_weights_first", "_weights_first"]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation(activation):
    layer = _layer(2, activation=activation)
    expected, _ = _expected(layer)
    np.testing.assert_allclose(
        np.reshape(layer(X)[0], expected.shape), expected, rtol=1e-5, atol=1e-5
    )


def test_only_the_fusion_trains():
    layer = _layer(4)
    assert {w.name for w in layer.trainable_weights} == {
        "query_kernel",
        "query_bias",
        "key_kernel",
        "value_kernel",
    }
    assert "value_kernel" not in {w.name for w in _layer(4, "static").weights}


def test_the_value_starts_near_the_identity():
    layer = AdapterFusion(2, UNITS, "relu")
    layer.build(X.shape)
    value = np.asarray(layer.value_kernel)
    np.testing.assert_array_equal(np.diag(value), 1)
    np.testing.assert_allclose(value[~np.eye(WIDTH, dtype=bool)], 1e-6)
    pull = float(layer.pull_to_identity())
    np.testing.assert_allclose(pull, WIDTH * (WIDTH - 1) * 1e-12, rtol=1e-5)
    assert float(_layer(2).pull_to_identity()) > 1
    assert float(_layer(2, "static").pull_to_identity()) == 0


def test_zero_padding_changes_nothing():
    layer = _layer(2)
    wide = AdapterFusion(2, UNITS + 2, "silu")
    wide.build(X.shape)
    tiny.randomize(wide.weights, scale=0.5)
    narrow = _layer(2, activation="silu")

    def widen(array, axis):
        parts = np.split(np.asarray(array), 2, axis)
        shape = list(parts[0].shape)
        shape[axis] = 2
        return np.concatenate(
            [parts[0], np.zeros(shape), parts[1], np.zeros(shape)], axis
        )

    for name, axis in (("down_kernel", 1), ("down_bias", 0), ("up_kernel", 0)):
        getattr(wide, name).assign(widen(getattr(narrow, name), axis))
    for name in ("up_bias", "query_kernel", "query_bias", "key_kernel"):
        getattr(wide, name).assign(getattr(narrow, name))
    wide.value_kernel.assign(narrow.value_kernel)
    np.testing.assert_allclose(wide(X)[0], narrow(X)[0], atol=1e-5)
    assert np.abs(layer(X)[0] - narrow(X)[0]).max() > 0.1


def test_chosen_adapters_are_a_fusion_of_those_alone():
    layer = _layer(5)
    few = AdapterFusion(2, UNITS, "relu")
    few.build(X.shape)
    chosen = [3, 1]
    columns = np.concatenate(
        [np.arange(n * UNITS, (n + 1) * UNITS) for n in chosen]
    )
    few.down_kernel.assign(np.asarray(layer.down_kernel)[:, columns])
    few.down_bias.assign(np.asarray(layer.down_bias)[columns])
    few.up_kernel.assign(np.asarray(layer.up_kernel)[columns])
    few.up_bias.assign(np.asarray(layer.up_bias)[chosen])
    for name in ("query_kernel", "query_bias", "key_kernel", "value_kernel"):
        getattr(few, name).assign(getattr(layer, name))
    fused, weights = layer(X, chosen=np.array(chosen))
    expected, p = few(X)
    assert np.abs(fused - layer(X)[0]).max() > 0.1
    np.testing.assert_allclose(fused, expected, atol=1e-5)
    np.testing.assert_allclose(weights, p, atol=1e-5)


@pytest.mark.parametrize("start", ["constant", "random"])
def test_the_value_starts_at_the_identity(start):
    keras.utils.set_random_seed(0)
    layer = AdapterFusion(2, UNITS, "relu", value_start=start)
    layer.build((None, None, 64))
    off_diagonal = np.asarray(layer.value_kernel)[~np.eye(64, dtype=bool)]
    np.testing.assert_array_equal(np.diag(layer.value_kernel), 1)
    if start == "constant":
        np.testing.assert_allclose(off_diagonal, 1e-6)
    else:
        assert abs(off_diagonal.std() / 1e-6 - 1) < 0.05
        assert abs(off_diagonal.mean()) < 1e-7
