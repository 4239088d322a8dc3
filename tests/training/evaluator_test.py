"""Tests evaluation in loops on the device, and where examples are kept."""

import dataclasses
import gc

import numpy as np
import pytest
import tensorflow as tf

from tests.runs import toy_runs
from tf_adapters.common.errors import ConfigError
from tf_adapters.data.batches import batch_plan
from tf_adapters.training import device_loops


def _trainer(strategy="one_device", **train):
    config = toy_runs.config(eval_batch_size=3, **train)
    data = dataclasses.replace(
        config.data, max_length=12, batching="fixed", length_buckets=(8,)
    )
    return toy_runs.trainer(dataclasses.replace(config, data=data), strategy)


@pytest.mark.parametrize(
    "strategy",
    ["one_device", pytest.param("mirrored", marks=pytest.mark.slow)],
)
def test_a_loop_of_batches_gives_the_same_outputs(monkeypatch, strategy):
    """Also where the number of batches is not divisible by the loop's."""
    expected = _trainer(strategy).predict(toy_runs.examples())
    trainer = _trainer(strategy, steps_per_loop=2)
    calls = []
    steps = trainer.evaluator.eval_steps

    def counted(step, batches):
        for results in steps(step, batches):
            calls.append(1)
            yield results

    monkeypatch.setattr(trainer.evaluator, "eval_steps", counted)
    outputs = trainer.predict(toy_runs.examples())
    np.testing.assert_allclose(outputs, expected, atol=1e-6)
    # 21 examples are seven batches of two lengths.
    assert len(calls) == 4


def test_a_loop_is_as_long_as_its_outputs_have_room(monkeypatch):
    spec = {"token_ids": tf.TensorSpec([4, 8], "int32")}

    def function(inputs):
        return tf.one_hot(inputs["token_ids"], 16)

    assert device_loops.num_batches(function, spec, 10) == 10
    monkeypatch.setattr(device_loops, "_MOST_BYTES", 3 * 4 * 8 * 16 * 4)
    assert device_loops.num_batches(function, spec, 10) == 3
    monkeypatch.setattr(device_loops, "_MOST_BYTES", 1)
    assert device_loops.num_batches(function, spec, 10) == 1


def test_tokens_are_placed_once_on_each_host():
    """Not for each epoch and each length, and not after they are gone."""
    trainer, examples = _trainer(), toy_runs.examples()
    plan = batch_plan.plan_evaluation(examples.lengths, 3, (8, 12))
    placed = trainer.inputs._on_hosts
    for batches in (plan[:1], plan[-1:], plan[:1]):
        trainer.inputs.dataset(examples, batches)
        # Token ids and segment ids.
        assert len(placed) == 2
    kept = placed[id(examples.token_ids), 0]
    unlabeled = dataclasses.replace(examples, targets=None)
    assert trainer.inputs._on_host(unlabeled, 0).token_ids is kept
    assert trainer.inputs._on_host(unlabeled, 1).token_ids is not kept
    del examples, unlabeled
    gc.collect()
    assert not placed


def test_fewer_rows_than_replicas_are_refused():
    trainer = _trainer("mirrored")
    with pytest.raises(ConfigError, match="1 training examples has fewer"):
        trainer.plan(toy_runs.examples(1), 0)
    assert len(trainer.plan(toy_runs.examples(2), 0)) == 1
