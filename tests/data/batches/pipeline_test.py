"""Tests that batches are complete, in a known order, with little padding."""

import numpy as np
import pytest

from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.data.examples import Examples

LENGTHS = np.random.default_rng(0).integers(3, 60, 103)
BATCHINGS = ("grouped", "random", "fixed")


def _plan(epoch=0, seed=0, batching="grouped", batch_size=8):
    return batch_plan.plan_training(
        LENGTHS, batch_size, seed, epoch, batching, fixed_lengths=(64,)
    )


def _examples():
    rows = [np.arange(1, n + 1, dtype="int32") for n in LENGTHS]
    targets = LENGTHS.astype("int32")
    return pipeline.to_tensors(Examples(rows, rows, targets, pad_id=99))


@pytest.mark.parametrize("batching", BATCHINGS)
def test_every_example_counts_once(batching):
    plan = _plan(batching=batching)
    seen = np.concatenate([batch.indices for batch in plan])
    assert sorted(seen) == list(range(len(LENGTHS)))
    assert sorted({len(batch.indices) for batch in plan}) == [7, 8]


@pytest.mark.parametrize("batching", BATCHINGS)
def test_order_is_a_function_of_seed_and_epoch(batching):
    def order(**options):
        plan = _plan(batching=batching, **options)
        return np.concatenate([batch.indices for batch in plan]).tolist()

    assert order() == order()
    assert order() != order(epoch=1)
    assert order() != order(seed=1)


def test_grouping_saves_padding():
    shares = {
        batching: batch_plan.padding_fraction(_plan(batching=batching), LENGTHS)
        for batching in BATCHINGS
    }
    assert shares["grouped"] < 0.1 < 0.3 < shares["random"] < shares["fixed"]


def test_batches_hold_the_rows_they_name():
    (batch,) = [b for b in _plan() if 5 in b.indices]
    (features,) = list(pipeline.dataset(_examples(), [batch]))
    row = batch.indices.tolist().index(5)
    ids = features["token_ids"][row].numpy()
    length = LENGTHS[5]
    assert ids[:length].tolist() == list(range(1, length + 1))
    assert (ids[length:] == 99).all() and len(ids) == batch.length
    assert features["padding_mask"][row].numpy().sum() == length
    assert features["targets"][row] == length
    np.testing.assert_array_equal(features["indices"], batch.indices)


@pytest.mark.parametrize("num_shards", [1, 2, 3])
def test_weights_of_all_shards_sum_to_one(num_shards):
    plan = _plan(batch_size=51)
    assert len(plan[-1].indices) == 1 or len(plan[0].indices) == 1
    dataset = pipeline.dataset(_examples(), plan, num_shards, range(num_shards))
    parts = list(dataset)
    assert len(parts) == num_shards * len(plan)
    for i in range(len(plan)):
        group = parts[i * num_shards : (i + 1) * num_shards]
        total = sum(float(part["weights"].numpy().sum()) for part in group)
        assert abs(total - 1) < 1e-6


def test_shards_of_two_workers_make_the_whole():
    plan, whole = _plan(), []
    for worker in (0, 1):
        parts = pipeline.dataset(_examples(), plan, 2, [worker])
        whole.append([part["indices"].numpy() for part in parts])
    for first, second, batch in zip(*whole, plan, strict=True):
        np.testing.assert_array_equal(
            np.concatenate([first, second]), batch.indices
        )


def test_fixed_batches_have_one_length():
    lengths = {batch.length for batch in _plan(batching="fixed")}
    assert lengths == {64}


def test_evaluation_begins_with_the_longest():
    plan = batch_plan.plan_evaluation(LENGTHS, 10)
    assert plan[0].length == LENGTHS.max()
    assert sum(len(batch.indices) for batch in plan) == len(LENGTHS)
