"""Compares correlations and pairs with NumPy."""

import numpy as np

from tests import tiny
from tests.merging import made_adapters
from tf_adapters.merging import activations
from tf_adapters.merging import matching


def test_correlations_are_numpys():
    draw = np.random.default_rng(0)
    one, other = draw.normal(size=(2, 50, 3))
    wanted = np.corrcoef(one.T, other.T)[:3, 3:]
    np.testing.assert_allclose(matching.correlations(one, other), wanted)


def test_a_unit_that_is_never_active_is_like_none():
    one = np.random.default_rng(0).normal(size=(50, 2))
    one[:, 1] = 0
    found = matching.correlations(one, one)
    np.testing.assert_allclose(found, [[1, 0], [0, 0]], atol=1e-12)


def test_pairs_are_chosen_together():
    """The largest entry alone, 9, would leave the other two with 0."""
    likeness = np.array([[9.0, 8.0], [7.0, 0.0]])
    np.testing.assert_array_equal(matching.best_order(likeness), [1, 0])


def test_units_are_activated_as_the_formula_says():
    """Pfeiffer's read what a block puts out without its adapter."""
    encoder = tiny.encoder()
    model = made_adapters.made(
        encoder, made_adapters.METHODS["pfeiffer"], "one", 2
    )
    batch = tiny.batch(encoder, size=70)  # More than are computed at once.
    found = activations.unit_activations(model, batch)
    mask = batch["padding_mask"].astype(bool)
    weights = made_adapters.tensors(model)
    for block in range(tiny.BLOCKS):
        with model.without([block]):
            states = model.encode(batch, return_hidden_states=True)
        read = np.asarray(states["hidden_states"][block + 1])[mask]
        slot = f"block_{block}_after_ffn/delta"
        down = weights[f"{slot}/down_kernel"], weights[f"{slot}/down_bias"]
        wanted = np.maximum(read @ down[0] + down[1], 0)
        np.testing.assert_allclose(found[slot], wanted, atol=1e-4)
