"""Compares projected attention with the paper's formula, with gradients."""

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.references import methods_numpy
from tests.references import projected_attention_numpy as reference
from tf_adapters.layers import Context
from tf_adapters.layers.stateless_seeds import StatelessSeeds
from tf_adapters.methods import ProjectedAttention
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.projected_attention import SmallAttention

WIDTH, UNITS, HEADS = 6, 4, 2
RANDOM = np.random.default_rng(0)
X, INPUT, PULL = RANDOM.normal(size=(3, 2, 5, WIDTH)).astype("float32")
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32")
CONTEXT = Context(MASK, block_input=tf.constant(INPUT))


def _slots(num_blocks=1, **options):
    options = {"attention_dropout": 0.0, **options}
    method = ProjectedAttention(units=UNITS, num_heads=HEADS, **options)
    slots = method.make_slots(EncoderShape(num_blocks, WIDTH, 4 * WIDTH))
    for block in slots:
        block["after_ffn"].build(X.shape)
    return [block["after_ffn"] for block in slots]


def _named(slot):
    """Returns weights large enough to matter, in float64, by their name."""
    tiny.randomize(slot.variables, scale=0.7)
    return {v.name: np.float64(v.numpy()) for v in slot.variables}


@pytest.mark.parametrize("activation", ["linear", "gelu"])
def test_slot_is_the_papers_formula(activation):
    (slot,) = _slots(activation=activation)
    expected = reference.projected_attention(
        np.float64(INPUT),
        MASK,
        _named(slot),
        HEADS,
        methods_numpy.ACTIVATIONS[activation],
    )
    output, probes = slot(X, context=CONTEXT)
    assert np.abs(expected).max() > 1 and probes == {}
    np.testing.assert_allclose(output, X + expected, rtol=1e-5, atol=1e-5)


def test_gradients_are_those_of_the_papers_formula():
    """By central differences of the reference, which is in float64."""
    (slot,) = _slots(activation="gelu")
    weights = _named(slot)

    def loss():
        output = reference.projected_attention(
            np.float64(INPUT),
            MASK,
            weights,
            HEADS,
            methods_numpy.ACTIVATIONS["gelu"],
        )
        return (output * PULL).sum()

    with tf.GradientTape() as tape:
        output, _ = slot(X, context=CONTEXT)
        total = tf.reduce_sum(output * PULL)
    gradients = tape.gradient(total, [v.value for v in slot.variables])
    for variable, gradient in zip(slot.variables, gradients, strict=True):
        array = weights[variable.name]
        expected = np.empty_like(array)
        for place in np.ndindex(array.shape):
            value, array[place] = array[place], array[place] + 1e-5
            above = loss()
            array[place] = value - 1e-5
            expected[place] = (above - loss()) / 2e-5
            array[place] = value
        assert np.abs(expected).max() > 0.05, variable.name
        np.testing.assert_allclose(
            gradient, expected, rtol=1e-4, atol=2e-5, err_msg=variable.name
        )


def test_padding_is_not_attended_to():
    (slot,) = _slots()
    _named(slot)
    changed = INPUT.copy()
    changed[1, 3:] += 5
    other = Context(MASK, block_input=tf.constant(changed))
    first, second = slot(X, context=CONTEXT)[0], slot(X, context=other)[0]
    np.testing.assert_allclose(second[1, :3], first[1, :3], atol=1e-6)
    changed[1, 2] += 5  # A token.
    third = slot(X, context=Context(MASK, block_input=tf.constant(changed)))[0]
    assert np.abs(third - second)[1, :3].max() > 0.1


def test_blocks_share_the_projections_and_nothing_else():
    first, second = _slots(num_blocks=2)
    shared = {id(v) for v in first.variables} & {
        id(v) for v in second.variables
    }
    assert shared == {id(v) for v in first.projections.variables}
    assert first.attention.query_kernel is not second.attention.query_kernel


def test_attention_dropout_acts_in_training_only():
    (slot,) = _slots(attention_dropout=0.5)
    _named(slot)
    training = Context(
        MASK, block_input=CONTEXT.block_input, seeds=StatelessSeeds([1, 0])
    )
    calm = slot(X, context=CONTEXT)[0]
    assert np.abs(slot(X, context=training)[0] - calm).max() > 0.1
    np.testing.assert_array_equal(slot(X, context=CONTEXT)[0], calm)


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match="divides units=4. Received: .*=3"):
        SmallAttention(4, 3)
