"""Tests that initial weights do not depend on the backend of Keras."""

import keras
import numpy as np
import pytest

from tf_adapters.layers import initializers


@pytest.mark.parametrize("shape", [(1,), (7,), (37, 11), (128, 257)])
@pytest.mark.parametrize(
    ("make", "own", "atol"),
    [
        (
            lambda: initializers.random_normal(0.5),
            lambda: keras.initializers.RandomNormal(stddev=0.5),
            1e-6,
        ),
        (
            lambda: initializers.truncated_normal(0.02),
            lambda: keras.initializers.TruncatedNormal(stddev=0.02),
            1e-7,
        ),
        (
            lambda: initializers.random_uniform(0.3),
            lambda: keras.initializers.RandomUniform(-0.3, 0.3),
            0,
        ),
    ],
    ids=["normal", "truncated", "uniform"],
)
@pytest.mark.parametrize("seed", [0, 12345])
def test_other_backends_draw_tensorflows_numbers(
    monkeypatch, shape, make, own, atol, seed
):
    """Keras draws the seed of an initializer with Python's generator."""
    keras.utils.set_random_seed(seed)
    initializer = own()
    expected = [initializer(shape), initializer.clone()(shape)]
    keras.utils.set_random_seed(seed)
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    initializer = make()
    received = [initializer(shape), initializer.clone()(shape)]
    assert np.abs(expected[0]).max() > 1e-3
    for values, wanted in zip(received, expected, strict=True):
        np.testing.assert_allclose(values, wanted, rtol=0, atol=atol)


def test_with_tensorflow_they_are_keras_own():
    made = initializers.truncated_normal(0.02)
    assert type(made) is keras.initializers.TruncatedNormal
    assert made.get_config()["stddev"] == 0.02
