"""Tests of training without the adapters of the first blocks."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from tests import tiny
from tests.runs import toy_runs
from tf_adapters import methods
from tf_adapters.common.errors import ConfigError
from tf_adapters.training.adapter_drop import num_left_out


def test_every_number_is_drawn_alike_and_again_for_the_same_batch():
    drawn = [num_left_out((1, 3), 7, (1, step)) for step in range(900)]
    counts = collections.Counter(drawn)
    assert sorted(counts) == [1, 2, 3]
    assert min(counts.values()) > 250
    assert drawn[5] == num_left_out((1, 3), 7, (1, 5))
    assert drawn != [num_left_out((1, 3), 8, (1, step)) for step in range(900)]
    assert num_left_out((), 7, (1, 5)) == 0


@pytest.mark.parametrize("between", [[3], [2, 1], [-1, 1], [0, 1, 2]])
def test_other_settings_are_refused(between):
    with pytest.raises(ConfigError, match="train.adapter_drop.*Received"):
        toy_runs.config(adapter_drop=between)


@pytest.fixture(scope="module")
def trained():
    """A trainer after one epoch, and its weights before and after."""
    trainer = toy_runs.trainer(
        toy_runs.config(epochs=1, adapter_drop=[1, 1], weight_decay=0.1),
        method=methods.Pfeiffer(units=4),
        num_blocks=2,
    )
    before = tiny.values(trainer.variables)
    toy_runs.fit(trainer)
    return trainer, before, tiny.values(trainer.variables)


@pytest.mark.integration
def test_adapters_of_left_out_blocks_do_not_change(trained):
    trainer, before, after = trained
    changed = {
        name: bool(np.any(old != new))
        for name, old, new in zip(trainer.names, before, after, strict=True)
    }
    still = {name for name in changed if name.startswith("block_0")}
    assert still
    assert still == {
        name for name, is_changed in changed.items() if not is_changed
    }
    assert not trainer.model.left_out


@pytest.mark.integration
def test_no_gradient_is_computed_below_the_first_trained_weight(trained):
    """The step has the products of two forward blocks and one backward."""
    trainer, *_ = trained
    counts = {}
    for left_out in (0, 1):
        data = trainer.inputs.dataset(
            toy_runs.examples(), trainer.plan(toy_runs.examples(), 0)
        )
        context.enable_run_metadata()
        trainer.step.run(iter(data), tf.constant(1), left_out)
        ran = context.export_run_metadata()
        context.disable_run_metadata()
        counts[left_out] = sum(
            "MatMul" in node.op
            for function in ran.function_graphs
            for node in function.post_optimization_graph.node
        )
    # Backward, each of a block's frozen products has one of its own.
    assert counts[0] - counts[1] > 8, counts
