"""Tests that negatives come from the rows of one replica or one part."""

import keras
import numpy as np
import pytest

from tests import tiny
from tests.training import single_steps
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.data.examples import Examples
from tf_adapters.models.adapter_model import adapt
from tf_adapters.training import distribution
from tf_adapters.training.trainer import Trainer

pytestmark = pytest.mark.integration
HEAD = heads.SentenceRanking()


def _examples():
    ids = [
        [single_steps._ids(8)[i] for i in row]
        for row in ((0, 1), (2, 3), (4, 5), (6, 7))
    ]
    segments = [[0 * text for text in row] for row in ids]
    targets = np.arange(8, dtype="int32").reshape(4, 2)
    return pipeline.to_tensors(Examples(ids, segments, targets, pad_id=0))


@pytest.mark.parametrize(
    ("name", "parts"), [("mirrored", 1), ("one_device", 2)]
)
def test_the_loss_of_a_batch_is_that_of_its_halves(name, parts):
    strategy = distribution.make_strategy(name)
    with strategy.scope():
        model = adapt(tiny.encoder(), methods.Pfeiffer(units=4), HEAD)
        tiny.randomize(model.trained_variables().values())
    config = single_steps.config(accumulation_steps=parts)
    trainer = Trainer(
        model, strategy, config.train, config.data, config.seed, ()
    )
    trainer.prepare_training(1)
    examples = _examples()
    batch = batch_plan.Batch(np.arange(4), int(examples.lengths.max()))
    (features,) = pipeline.dataset(examples, [batch])
    targets = features.pop("targets")
    del features["weights"], features["indices"]
    outputs = keras.ops.convert_to_tensor(np.asarray(model(features)))
    halves = [
        np.asarray(HEAD.loss(targets[rows], outputs[rows]))
        for rows in (slice(0, 2), slice(2, 4))
    ]
    whole = float(np.mean(HEAD.loss(targets, outputs)))
    part = next(iter(trainer.inputs.dataset(examples, [batch])))
    received = float(trainer.step.on_replicas(part)[0])
    assert received == pytest.approx(np.mean(halves), rel=1e-4)
    assert abs(whole - np.mean(halves)) > 1e-2
