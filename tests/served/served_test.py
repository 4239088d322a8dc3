"""Tests that hostile requests are refused or answered rightly; see `run.py`."""

import numpy as np
import pytest

from tests.served import models
from tests.served import trial

# With a seed of their own: `run.py` sends others.
_SEED = 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", models.KINDS)
def test_rows_are_answered_as_if_alone(kind, record_property):
    record_property("faults", 100 * len(models.signatures_of(kind)))
    for signature in models.signatures_of(kind).values():
        answered = [trial.run(signature, i, _SEED) for i in range(100)]
        assert 10 < sum(answered) < 90


class _Echo:
    """A model that answers with a row of another request."""

    takes_texts, refusals = False, (ValueError,)
    inputs = {"token_ids": 2, "padding_mask": 2}

    def __call__(self, request):
        ids = request["token_ids"]
        if ids.shape != request["padding_mask"].shape:
            raise ValueError("The shapes differ.")
        return {"logits": np.cumsum(ids.astype("float32"), 0)}


def test_an_answer_from_another_row_is_found():
    with pytest.raises(AssertionError, match="of logits"):
        for number in range(50):
            trial.run(_Echo(), number, _SEED)
