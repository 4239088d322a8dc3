"""Tests that the features of a batch are those of `pipeline.dataset`."""

import numpy as np
import pytest

from tf_adapters.data.batches import arrays
from tf_adapters.data.batches import pipeline
from tf_adapters.data.batches.batch_plan import Batch
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.examples import Examples

LENGTHS = (3, 7, 1, 5)
ROWS = [np.arange(1, n + 1, dtype="int32") for n in LENGTHS]
SEGMENTS = [(row > 2).astype("int32") for row in ROWS]
CLASSES = np.array([2, 0, 1, 2], "int32")
SCORES = np.array([0.5, -1.25, 3.0, 0.1], "float32")
PER_TOKEN = [np.where(row % 2, row, IGNORED).astype("int32") for row in ROWS]
COUNTS = np.array([2, 4, 1, 3])
# Segment ids, targets, and the number of loss terms of each example.
KINDS = {
    "segments": (SEGMENTS, CLASSES, None),
    "no segments": (None, CLASSES, None),
    "scores": (SEGMENTS, SCORES, None),
    "per token": (SEGMENTS, PER_TOKEN, COUNTS),
    "no targets": (SEGMENTS, None, None),
}
BATCHES = {
    "full": Batch(np.array([2, 0]), 8, 2),
    "padding": Batch(np.array([3, 1]), 7, 5),
    "no size": Batch(np.array([1, 2, 3]), 7),
}


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("kind", KINDS)
def test_features_equal_those_of_the_pipeline(kind, batch):
    segments, targets, counts = KINDS[kind]
    examples = Examples(ROWS, segments, targets, pad_id=9, counts=counts)
    (expected,) = pipeline.dataset(pipeline.to_tensors(examples), [batch])
    found = arrays.features(examples, batch)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.numpy().dtype, name
        np.testing.assert_array_equal(found[name], value.numpy(), name)
