"""Tests the messages of a run before it trains."""

import pytest

from tests.runs import toy_runs
from tf_adapters.runs import run_facts

SPLITS = ("train", "validation", "test")


@pytest.mark.parametrize(
    ("batch_size", "says"), [(100_000, True), (22, True), (21, False)]
)
def test_a_batch_of_more_than_all_rows_is_said(caplog, batch_size, says):
    some = {f"sick {split}": toy_runs.examples(21) for split in SPLITS}
    run_facts.print_sizes(some, batch_size)
    expected = (
        f"sick train: a batch of {batch_size:,} holds all 21 examples, so that "
        "each epoch is a single step"
    )
    assert (expected in caplog.text) is says
    assert len(caplog.records) == says
