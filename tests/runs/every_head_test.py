"""Tests that all kinds of output train with all kinds of methods."""

import numpy as np
import pytest

from tests import tiny
from tests.methods import cases
from tests.training import single_steps
from tf_adapters.common.errors import ConfigError

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "kind"), cases.pairs(single_steps.HEADS, shift=2)
)
def test_a_step_trains_what_is_declared(name, kind):
    method = cases.EVERY[name]
    head, make = single_steps.HEADS[kind]
    if name == "head_only" and head.makes_vectors:
        with pytest.raises(ConfigError, match="nothing to train"):
            single_steps.make_trainer(method, head, single_steps.config())
        return
    trainer = single_steps.make_trainer(method, head, single_steps.config())
    model = trainer.model
    before = {v.path: tiny.values([v])[0] for v in model.variables}
    loss = single_steps.take(trainer, make(), compiled=False)
    assert np.isfinite(loss) and abs(loss) > 1e-2
    trained = {v.path for v in model.trained_variables().values()}
    moved = {
        v.path
        for v in model.variables
        if not np.array_equal(before[v.path], tiny.values([v])[0])
    }
    assert all(np.isfinite(v).all() for v in tiny.values(model.variables))
    own_head = {v.path for v in model.head_layer.weights} & trained
    if kind == "choice":  # What all choices share cancels in their softmax.
        own_head.discard("head/score/bias")
    # What is drawn and the seeds may be no weights.
    weights = {v.path for v in model.weights if "seed" not in v.path}
    assert own_head <= moved
    assert (moved & weights) <= trained
    # Closed gates and keys' bias stay; most of what trains moves.
    assert len(moved & trained) > len(trained) / 2
