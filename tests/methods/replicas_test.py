"""Tests that replicas and parts of a batch give equal results, by method.

Steps run without a graph, which would take minutes to build for all methods;
`tests/training/trainer_test.py` has three methods in graphs.
"""

import dataclasses
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.methods import cases
from tf_adapters import heads
from tf_adapters.config import resolve
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.data.examples import Examples
from tf_adapters.training import distribution
from tf_adapters.training.train_step import TrainStep
from tf_adapters.training.trainer import Trainer

pytestmark = pytest.mark.integration

HEAD = heads.Classification(("no", "yes", "maybe"), dropout_rate=0.0)
STEPS = 2
CONFIG = resolve.resolve_config(
    {
        "task": "toy",
        "method": "houlsby",  # Of the settings only those of training count.
        "train": {"batch_size": 5, "learning_rate": 1e-2, "clip_norm": 0.5},
    }
)


class _SameDraws(TrainStep):
    """Draws the same gates on every replica, so that two can equal one."""

    def dropout_seed(self, replica, number=0):
        step = tf.cast(self.optimizer.iterations.value, tf.int32)
        return tf.stack([7, 1024 * step])


def _examples():
    generator = np.random.default_rng(0)
    rows = [
        generator.integers(1, tiny.VOCABULARY, length)
        for length in (3, 4, 3, 5, 4, 3, 5, 4, 3, 4)
    ]
    segments = [0 * row for row in rows]
    targets = np.array([0, 1, 2, 1, 0, 2, 2, 1, 0, 0], "int32")
    return pipeline.to_tensors(Examples(rows, segments, targets, pad_id=0))


def _train(method, strategy_name, parts=1):
    """Returns the losses, and the trained weights before and after."""
    strategy = distribution.make_strategy(strategy_name)
    # Mixout mixes with the initial weights, which must be the same ones.
    keras.utils.set_random_seed(0)
    with strategy.scope():
        encoder = tiny.encoder(num_blocks=cases.num_blocks(method))
        model = cases.build(encoder, method, HEAD)
        # Small gradients would be mostly noise, which Adam makes large.
        tiny.randomize(model.trained_variables().values())
    settings = dataclasses.replace(CONFIG.train, accumulation_steps=parts)
    config = dataclasses.replace(CONFIG, train=settings)
    trainer = Trainer(
        model, strategy, config.train, config.data, config.seed, ("accuracy",)
    )
    trainer.prepare_training(STEPS)
    trainer.step = _SameDraws(
        model,
        strategy,
        trainer.variables,
        trainer.optimizer,
        settings,
        0,
        trainer.compiler,
        trainer.half_kernels,
    )
    before = tiny.values(trainer.variables)
    examples = _examples()
    # Five examples do not divide by two.
    plan = batch_plan.plan_evaluation(examples.lengths, 5)
    losses = [
        float(trainer.step.on_replicas(features)[0])
        for features in itertools.islice(
            trainer.inputs.dataset(examples, plan), len(plan)
        )
    ]
    assert len(losses) == STEPS
    return losses, before, tiny.values(trainer.variables), trainer.variables


def _check(name, trained, others, atol):
    losses, before, after, variables = trained
    other_losses, start, end, _ = others
    np.testing.assert_allclose(other_losses, losses, rtol=1e-5)
    for old, first, second, other_old, variable in zip(
        before, after, end, start, variables, strict=True
    ):
        np.testing.assert_array_equal(other_old, old)
        # The loss does not depend on the keys' bias: its gradient is noise.
        if "key/bias" in variable.path.replace("--", "/"):
            continue
        # A weight whose gate is closed in both draws stays.
        gated = name.startswith("adapter_bias_l0") and "alpha/" in variable.path
        if not gated and not name.startswith("diff_pruning"):
            assert np.abs(first - old).max() > 1e-3, variable.path
        np.testing.assert_allclose(
            second, first, atol=atol, err_msg=variable.path
        )


@pytest.mark.parametrize("name", cases.names())
def test_two_replicas_equal_one(name):
    method = cases.EVERY[name]
    one = _train(method, "one_device")
    _check(name, one, _train(method, "mirrored"), 2e-5)


@pytest.mark.parametrize(
    "strategy",
    ["one_device", pytest.param("mirrored", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(
    "name",
    ["houlsby", pytest.param("adapter_bias_l0", marks=pytest.mark.slow)],
)
def test_a_batch_in_parts_equals_the_whole(name, strategy):
    """Five examples in three parts, clipped after the sum."""
    method = cases.EVERY[name]
    whole = _train(method, "one_device")
    # Adam divides by gradients that are nearly zero, which gives noise.
    atol = 5e-6 if strategy == "one_device" else 2e-5
    _check(name, whole, _train(method, strategy, parts=3), atol)
