"""Compares the linear head with NumPy: its input, type and dropout."""

from keras import ops
import numpy as np
import pytest

from tests import tiny
from tf_adapters.heads.linear import LinearLayer
from tf_adapters.heads.linear import check_reads
from tf_adapters.layers.stateless_seeds import StatelessSeeds

WIDTH, OUTPUTS = 6, 3
RANDOM = np.random.default_rng(0)
SEQUENCE = RANDOM.normal(size=(4, 5, WIDTH)).astype("float32")
POOLED = RANDOM.normal(size=(4, WIDTH)).astype("float32")


def _head(reads="first_token", dropout_rate=0.0):
    layer = LinearLayer(OUTPUTS, reads, dropout_rate)
    layer.build((None, None, WIDTH))
    tiny.randomize(layer.weights, scale=1.0)
    return layer, *(w.astype("float64") for w in tiny.values(layer.weights))


def _encoder_outputs(dtype="float32"):
    return {
        "first_token_output": ops.cast(SEQUENCE[:, 0], dtype),
        "pooled_output": ops.cast(POOLED, dtype),
    }


@pytest.mark.parametrize(
    ("reads", "vectors"),
    [("first_token", SEQUENCE[:, 0]), ("pooled_output", POOLED)],
)
def test_it_is_a_linear_map_of_what_it_reads(reads, vectors):
    layer, kernel, bias = _head(reads)
    expected = vectors.astype("float64") @ kernel + bias
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(layer(_encoder_outputs()), expected, atol=1e-5)


def test_it_computes_in_float32_on_a_bfloat16_encoder():
    layer, kernel, bias = _head()
    outputs = layer(_encoder_outputs("bfloat16"))
    read = np.asarray(ops.cast(ops.cast(SEQUENCE, "bfloat16"), "float32"))
    assert ops.dtype(outputs) == "float32"
    np.testing.assert_allclose(outputs, read[:, 0] @ kernel + bias, atol=1e-5)


def test_dropout_acts_on_what_is_read_and_in_training_only():
    layer, _, _ = _head(dropout_rate=0.5)
    kernel = np.zeros((WIDTH, OUTPUTS), "float32")
    kernel[:OUTPUTS] = np.eye(OUTPUTS)
    layer.kernel.assign(kernel)
    layer.bias.assign(np.ones(OUTPUTS))
    read = SEQUENCE[:, 0, :OUTPUTS]
    np.testing.assert_allclose(layer(_encoder_outputs()), 1 + read, atol=1e-6)
    outputs = layer(_encoder_outputs(), seeds=StatelessSeeds([1, 2])) - 1
    kept = ~np.isclose(outputs, 0, atol=1e-6)
    assert 0 < kept.sum() < kept.size
    np.testing.assert_allclose(outputs, np.where(kept, 2 * read, 0), atol=1e-5)


def test_it_starts_as_in_bert():
    layer = LinearLayer(200, "first_token", 0.0)
    layer.build((None, None, 100))
    kernel, bias = tiny.values([layer.kernel, layer.bias])
    # A normal of deviation 0.02, cut at two of them.
    assert np.abs(kernel).max() <= 0.04
    assert abs(kernel.std() / (0.02 * 0.8796) - 1) < 0.03
    assert not bias.any()


def test_it_cannot_read_what_no_encoder_returns():
    with pytest.raises(
        ValueError, match="Unknown reads `last_token`.*first_token"
    ):
        check_reads("last_token")
