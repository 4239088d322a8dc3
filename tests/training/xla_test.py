"""Tests that a train step is one XLA program with static shapes.

TPUs need this. XLA compiles for the CPU here, but refuses the same operations
and value-dependent shapes as for a TPU.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.methods import cases
from tests.training import single_steps

pytestmark = pytest.mark.slow


def _draws(name):
    """Returns whether a method's step draws random gates or Mixout masks."""
    drawing = ("mixout", "diff_pruning", "_l0", "subset")
    return any(part in name for part in drawing)


def _check(name, head, examples, draws=False, **train):
    """Compares a compiled step with a plain one.

    From the same seed, XLA and TensorFlow draw different numbers. For methods
    that draw any, this only checks that a step trains and stays finite.
    """
    settings = single_steps.config(**train)
    compiled, plain = (
        single_steps.make_trainer(cases.EVERY[name], head, settings)
        for _ in range(2)
    )
    loss = single_steps.take(compiled, examples, True)
    expected = single_steps.take(plain, examples, False)
    assert abs(expected) > 1e-2
    if draws:
        assert 0.2 < loss / expected < 5
        _check_trained(compiled, head, settings)
        return
    np.testing.assert_allclose(loss, expected, rtol=1e-4)
    for variable, other in zip(
        compiled.variables, plain.variables, strict=True
    ):
        # Keys' bias has no gradient but noise.
        if "key/bias" not in variable.path.replace("--", "/"):
            np.testing.assert_allclose(
                variable.numpy(), other.numpy(), atol=2e-3
            )


def _check_trained(trainer, head, settings):
    other = single_steps.make_trainer(trainer.model.method, head, settings)
    after, before = map(tiny.values, (trainer.variables, other.variables))
    assert all(np.isfinite(value).all() for value in after)
    # What a draw closes, or mixes away, stays as it was.
    assert not all(map(np.array_equal, after, before))


@pytest.mark.parametrize(("name", "kind"), cases.pairs(single_steps.HEADS))
def test_every_method_and_every_head(name, kind):
    head, make = single_steps.HEADS[kind]
    _check(name, head, make(), _draws(name))


# Forms of those methods whose step has other operations.
FORMS = (
    *("ia3_peft", "prefix_tuning_peft", "prompt_tuning", "compacter_plus_plus"),
    *("parallel", "mam", "invertible", "language_adapter"),
)


@pytest.mark.parametrize("name", FORMS)
def test_every_form(name):
    head, make = single_steps.HEADS["classification"]
    _check(name, head, make())


def test_a_batch_in_parts():
    head, make = single_steps.HEADS["classification"]
    _check("houlsby", head, make(), accumulation_steps=3)


def test_a_loop_on_the_device(monkeypatch):
    """Two steps in one compiled loop equal two calls."""
    head, make = single_steps.HEADS["classification"]
    examples, method = make(), cases.CASES["houlsby"][0]
    plan = single_steps.plan(examples)
    assert len(plan) == 2
    results = []
    for steps in (1, 2):
        trainer = single_steps.make_trainer(
            method, head, single_steps.config(steps_per_loop=steps)
        )
        monkeypatch.setattr(trainer.step, "on_replicas", _compiled(trainer))
        loops = [plan[i : i + steps] for i in range(0, 2, steps)]
        losses = [x for x, _ in trainer.train_loops(examples, loops)]
        results.append(np.concatenate(losses))
    np.testing.assert_allclose(*results, rtol=1e-5)


def _compiled(trainer):
    return tf.function(
        trainer.step.on_replicas, autograph=False, jit_compile=True
    )
