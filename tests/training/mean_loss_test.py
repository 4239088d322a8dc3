"""Tests that a whole set has the loss of one batch of all its examples."""

import numpy as np
import pytest
import tensorflow as tf

from tests.training import single_steps
from tf_adapters import methods
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.data.examples import IGNORED
from tf_adapters.training.mean_loss import mean_loss

pytestmark = pytest.mark.integration

KINDS = sorted(set(single_steps.HEADS) - {"masked_lm"})


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_loss_of_one_batch(kind):
    head, make = single_steps.HEADS[kind]
    examples = make()
    settings = single_steps.config()
    # Some heads have no weights, so something else must train.
    method = methods.Pfeiffer(units=2)
    trainer = single_steps.make_trainer(method, head, settings)
    indices = np.arange(len(examples))
    whole = batch_plan.Batch(indices, int(examples.lengths.max()))
    (features,) = pipeline.dataset(examples, [whole])
    targets, weights = features.pop("targets"), features.pop("weights")
    outputs = trainer.model(features)
    expected = tf.reduce_sum(head.loss(targets, outputs) * weights)
    found = mean_loss(head, trainer.predict(examples), examples)
    assert expected > 0.1
    assert found == pytest.approx(float(expected), rel=1e-5)


def test_hidden_tokens_have_a_mean_loss():
    head, make = single_steps.HEADS["masked_lm"]
    trainer = single_steps.make_trainer(
        methods.Pfeiffer(units=2), head, single_steps.config()
    )
    examples = make()
    outputs = trainer.predict(examples)
    tokens = np.concatenate(outputs)
    hidden = tokens[tokens[:, 1] != IGNORED]
    assert len(hidden)
    expected = -hidden[:, 0].mean()
    assert mean_loss(head, outputs, examples) == pytest.approx(expected)


def test_it_is_a_metric_where_it_is_asked_for():
    head, make = single_steps.HEADS["classification"]
    for asked in (False, True):
        settings = single_steps.config(evaluate_loss=asked)
        trainer = single_steps.make_trainer(methods.HeadOnly(), head, settings)
        assert ("loss" in trainer.evaluate(make())) is asked
