"""Tests `data.batching: fixed`: static shapes and unchanged results."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.config import resolve
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.data.examples import Examples
from tf_adapters.models.adapter_model import adapt
from tf_adapters.training import distribution
from tf_adapters.training.loop import Loop
from tf_adapters.training.trainer import Trainer

pytestmark = pytest.mark.integration

LENGTH, BATCH = 16, 8
ROWS = [
    np.random.default_rng(i).integers(1, tiny.VOCABULARY, 3 + i % 9)
    for i in range(21)
]


def _examples():
    segments = [0 * row for row in ROWS]
    targets = np.array([int(row[0] < 25) for row in ROWS], "int32")
    return pipeline.to_tensors(Examples(ROWS, segments, targets, pad_id=0))


def _plans(batch_size=BATCH):
    lengths = _examples().lengths
    training = batch_plan.plan_training(
        lengths, batch_size, 0, 0, "fixed", (LENGTH,)
    )
    return training, batch_plan.plan_evaluation(lengths, batch_size, (LENGTH,))


def _shapes(spec):
    specs = tf.nest.flatten(spec, expand_composites=True)
    return [tuple(part.shape) for part in specs]


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_every_batch_is_whole(shards):
    for plan in _plans():
        assert len(plan) == 3
        dataset = pipeline.dataset(_examples(), plan, shards, range(shards))
        spec = dataset.element_spec
        rows = BATCH // shards
        for name in ("token_ids", "padding_mask", "segment_ids"):
            assert tuple(spec[name].shape) == (rows, LENGTH)
        for name in ("weights", "indices", "targets"):
            assert tuple(spec[name].shape) == (rows,)
        parts = list(dataset.as_numpy_iterator())
        assert len(parts) == 3 * shards
        indices = np.concatenate([part["indices"] for part in parts])
        weights = np.concatenate([part["weights"] for part in parts])
        assert sorted(indices[indices >= 0]) == list(range(21))
        assert (indices == -1).sum() == 3
        assert not weights[indices == -1].any()
        np.testing.assert_allclose(weights.sum(), 3, atol=1e-6)
        # A model must be able to read padding.
        masks = np.concatenate([part["padding_mask"] for part in parts])
        assert masks.sum(axis=1).min() >= 3


def test_parts_are_equal_where_replicas_do_not_divide_the_batch():
    plan, _ = _plans()
    dataset = pipeline.dataset(_examples(), plan, 3, range(3))
    assert tuple(dataset.element_spec["indices"].shape) == (3,)
    weights = [part["weights"].numpy().sum() for part in dataset]
    np.testing.assert_allclose(np.sum(weights), 3, atol=1e-6)


def test_what_fills_up_is_padding():
    plan, _ = _plans()
    tokens = sum(len(row) for row in ROWS)
    share = batch_plan.padding_fraction(plan, _examples().lengths)
    assert share == pytest.approx(1 - tokens / (3 * BATCH * LENGTH))


BUCKETS = (5, 8, LENGTH)


@pytest.mark.parametrize("steps_per_loop", [1, 2])
def test_a_text_is_in_a_batch_of_the_smallest_length_that_holds_it(
    steps_per_loop,
):
    lengths = _examples().lengths
    plan = batch_plan.plan_training(
        lengths, 4, 0, 0, "fixed", BUCKETS, steps_per_loop
    )
    indices = np.concatenate([batch.indices for batch in plan])
    assert sorted(indices) == list(range(21))
    for batch in plan:
        shorter = max((n for n in BUCKETS if n < batch.length), default=0)
        assert batch.size == 4
        assert (lengths[batch.indices] <= batch.length).all()
        assert (lengths[batch.indices] > shorter).all()
    others = batch_plan.plan_training(
        lengths, 4, 0, 1, "fixed", BUCKETS, steps_per_loop
    )
    assert [b.length for b in plan] != [b.length for b in others]
    assert len(plan) == len(others)


def test_batches_of_one_length_come_together():
    lengths = np.random.default_rng(0).integers(3, LENGTH, 400)
    plan = batch_plan.plan_training(lengths, 4, 0, 0, "fixed", BUCKETS, 5)
    groups = itertools.groupby(batch.length for batch in plan)
    runs = [len(list(group)) for _, group in groups]
    assert len(plan) == 101 and len(runs) < 23


def test_buckets_beyond_the_longest_text_do_not_count():
    data = resolve.resolve_config(
        {
            "task": "toy",
            "method": "head_only",
            "data": {
                "batching": "fixed",
                "max_length": 16,
                "length_buckets": [64, 16, 8, 8],
            },
        }
    ).data
    assert data.fixed_lengths == (8, 16)


def _trainer(batching, strategy, **data):
    config = resolve.resolve_config(
        {
            "task": "toy",
            "method": "head_only",
            "data": {"batching": batching, "max_length": LENGTH, **data},
            "train": {
                "batch_size": BATCH,
                "eval_batch_size": BATCH,
                "epochs": 1,
                "learning_rate": 1e-2,
            },
        }
    )
    strategy = distribution.make_strategy(strategy)
    keras.utils.set_random_seed(0)
    with strategy.scope():
        head = heads.Classification(("no", "yes"), dropout_rate=0.0)
        model = adapt(tiny.encoder(), methods.HeadOnly(), head)
    return Trainer(
        model, strategy, config.train, config.data, config.seed, ("accuracy",)
    )


def _outcome(batching, strategy="one_device"):
    """Returns losses of a short training, and outputs after it."""
    trainer, records = _trainer(batching, strategy), []
    outcome = Loop(
        trainer, _examples(), _examples(), records.append, lambda values: None
    ).run()
    assert outcome["examples"] == 21
    losses = [record["loss"] for record in records if "loss" in record]
    assert len(losses) == 2  # The first, and the mean of the others.
    return losses, np.stack(trainer.predict(_examples()))


@pytest.fixture(scope="module")
def expected():
    """The results for the same examples in the same order, without padding."""
    return _outcome("random")


@pytest.mark.parametrize(
    "strategy",
    ["one_device", pytest.param("mirrored", marks=pytest.mark.slow)],
)
def test_losses_and_predictions_are_those_of_the_real_examples(
    strategy, expected
):
    losses, outputs = _outcome("fixed", strategy)
    # The third batch has three rows of padding among its eight.
    np.testing.assert_allclose(losses, expected[0], atol=2e-5)
    assert outputs.shape == (21, 2)
    np.testing.assert_allclose(outputs, expected[1], atol=1e-3)


def test_predictions_from_buckets_are_the_same():
    whole, buckets = (
        _trainer("fixed", "one_device", length_buckets=lengths)
        for lengths in ([], [5, 8])
    )
    expected = np.stack(whole.predict(_examples()))
    outputs = np.stack(buckets.predict(_examples()))
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    plan = buckets.evaluation_plan(_examples())
    assert len({batch.length for batch in plan}) > 1


@pytest.mark.parametrize("strategy", ["one_device", "mirrored"])
def test_no_dimension_of_a_step_is_unknown(strategy):
    trainer = _trainer("fixed", strategy)
    for plan in _plans():
        batches = trainer.inputs.dataset(_examples(), plan)
        shapes = _shapes(batches.element_spec)
        rows = BATCH // trainer.strategy.num_replicas_in_sync
        assert {shape[0] for shape in shapes} == {rows}
        assert {shape[1:] for shape in shapes} == {(), (LENGTH,)}
