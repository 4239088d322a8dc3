"""Tests training in float16, where gradients overflow and underflow."""

import keras
import numpy as np
import pytest

from tests import tiny
from tests.runs import toy_runs
from tf_adapters import heads
from tf_adapters.runs.checkpoints import Checkpoint
from tf_adapters.training import loss_scale
from tf_adapters.training.loop import Loop


def _trainer(weight, precision="mixed_float16", strategy="one_device"):
    """Returns a trainer that multiplies its losses by a number."""
    config = toy_runs.config(
        epochs=4, precision=precision, steps_per_loop=2, accumulation_steps=2
    )
    head = heads.Classification(
        ("no", "yes"), dropout_rate=0.0, class_weights=(weight, weight)
    )
    return toy_runs.trainer(config, strategy, head=head)


def _norms(trainer):
    examples = toy_runs.examples()
    loop = trainer.plan(examples, 0)[:1]
    _, norms = next(trainer.train_loops(examples, [loop]))
    return dict(zip(trainer.names, norms.numpy()[0], strict=True))


@pytest.mark.integration
def test_gradients_underflow_without_the_scale_and_not_with_it():
    exact = _trainer(1e-6, "float32")
    exact.prepare_training(100)
    expected = _norms(exact)
    half = _trainer(1e-6)
    half.prepare_training(100)
    # Larger than the first scale, with which a few gradients are so small that
    # float16 has one digit for them.
    half.optimizer.loss_scale.scale.assign(2.0**20)
    found = _norms(half)
    for name, norm in expected.items():
        assert found[name] == pytest.approx(norm, rel=0.02), name
    half.optimizer.loss_scale.scale.assign(1.0)
    lost = [name for name, norm in _norms(half).items() if norm == 0]
    # All that the gradient reaches through the encoder.
    assert sorted(lost) == sorted(n for n in expected if "head/" not in n)


class _Recovery:
    """Keeps the checkpoint of one step; resumes from that of another run."""

    def __init__(self, step, checkpoint=None):
        self.step, self.checkpoint = step, checkpoint
        self.taken = None

    def after_loop(self, progress, trainer, checks):
        if progress.step == self.step:
            self.taken = Checkpoint(self.step, *progress.write(trainer))


def _run(recovery):
    trainer = _trainer(3e3, strategy="mirrored")
    records = []
    examples = toy_runs.examples()
    result = Loop(
        trainer, examples, examples, records.append, lambda _: None, recovery
    ).run()
    return trainer, result, records


@pytest.mark.integration
@pytest.mark.slow
def test_what_overflows_is_skipped_and_counted_and_resumed_exactly():
    """Runs on two replicas; the checkpoint precedes the count of all skips."""
    recovery = _Recovery(step=5)
    trainer, result, records = _run(recovery)
    skipped = result["skipped_steps"]
    assert 2 < skipped < result["steps"]
    assert trainer.optimizer.iterations.numpy() == result["steps"] - skipped
    scale = trainer.optimizer.loss_scale.read()
    assert scale == 2.0 ** (15 - skipped)
    last = [record for record in records if "loss" in record][-1]
    assert (last["skipped_steps"], last["loss_scale"]) == (skipped, scale)
    assert all(np.isfinite(v).all() for v in tiny.values(trainer.variables))

    again, resumed, _ = _run(_Recovery(None, recovery.taken))
    assert resumed["skipped_steps"] == skipped
    assert again.optimizer.loss_scale.read() == scale
    for before, after in zip(
        tiny.values(trainer.variables),
        tiny.values(again.variables),
        strict=True,
    ):
        np.testing.assert_array_equal(before, after)


def test_the_scale_doubles_after_2000_finite_steps_and_halves_at_another():
    optimizer = keras.optimizers.SGD()
    optimizer.build([keras.Variable([0.0])])
    scale, applied = loss_scale.LossScale(optimizer), []

    def step(*norms):
        scale.apply_if_finite(norms, lambda: applied.append(norms))
        return scale.read(), int(scale.finite_steps.numpy())

    scale.finite_steps.assign(1998)
    assert step(1.0) == (2.0**15, 1999)
    assert step(2.0) == (2.0**16, 0)
    assert step(3.0) == (2.0**16, 1)
    assert step(1.0, np.inf) == (2.0**15, 0)
    assert step(np.nan) == (2.0**14, 0)
    assert applied == [(1.0,), (2.0,), (3.0,)]
