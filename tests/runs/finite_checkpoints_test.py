"""Tests that checkpoints between two checks have only finite weights."""

import types

import numpy as np
import pytest

from tf_adapters.common.errors import NonFiniteError
from tf_adapters.common.errors import Stopped
from tf_adapters.runs import recovery
from tf_adapters.training import workers
from tf_adapters.training.progress import Progress

_BAD = {
    "loss": ({"losses": [0.5, np.nan, 0.5]}, "The loss of step 3 is nan"),
    "gradient": (
        {"norms": [[1, 1], [1, np.inf], [1, 1]]},
        "gradient of step 3 .*: `b` has norm inf",
    ),
    # The loss and the gradient were finite, and the update was not.
    "weight": ({"weights": [0.1, -np.inf]}, "Weight `b` after step 4 is not"),
}


@pytest.fixture(params=sorted(_BAD))
def bad(request):
    return _BAD[request.param]


class _Folder:
    """Stands for a `RunFolder` that keeps the steps of its checkpoints."""

    checkpoint = None

    def __init__(self):
        self.saved = []

    def save_checkpoint(self, step, tensors, state):
        self.saved.append(step)


def _after_loop(
    checks=False, stops=False, losses=None, norms=None, weights=None
):
    """Comes by after step 4, when a checkpoint is due; returns their steps."""
    trainer = types.SimpleNamespace(
        names=["a", "b"],
        variables=[
            types.SimpleNamespace(numpy=lambda value=value: value)
            for value in (weights or [0.1, 0.2])
        ],
        optimizer=types.SimpleNamespace(variables=[], loss_scale=None),
        seed=0,
    )
    steps = (np.array(losses or [0.5] * 3), np.array(norms or [[1, 1]] * 3))
    # The last check was after step 1.
    progress = Progress(step=4, pending=[] if checks else [steps])
    run = _Folder()
    recover = recovery.Recovery(run, 0.0, None)
    recover.signal = "SIGTERM" if stops else None
    try:
        recover.after_loop(progress, trainer, checks)
    finally:
        assert all(one is steps for one in progress.pending)
    return run.saved


def test_one_is_written_of_what_is_finite():
    assert _after_loop() == [4]


def test_none_is_written_of_what_is_not(bad):
    given, said = bad
    with pytest.raises(NonFiniteError, match=f"{said}.*Lower --learning_rate"):
        _after_loop(**given)
    with pytest.raises(NonFiniteError, match=said):
        _after_loop(stops=True, **given)


def test_several_workers_end_at_their_next_check(bad, monkeypatch):
    """Each has a clock of its own, so one alone may be due."""
    monkeypatch.setattr(workers, "num_workers", lambda _: 2)
    monkeypatch.setattr(workers, "any_of", lambda _, flag: flag)
    given, said = bad
    assert _after_loop(**given) == []
    with pytest.raises(Stopped, match="after step 4"):
        _after_loop(checks=True, stops=True)


def test_the_best_weights_are_finite():
    """As they are saved after a check of losses and gradients."""
    trainer = types.SimpleNamespace(
        names=["a"],
        variables=[types.SimpleNamespace(numpy=lambda: np.nan)],
        seed=0,
    )
    with pytest.raises(NonFiniteError, match="Weight `a` after step 2"):
        Progress(step=2).finite_weights(trainer)


def test_a_checkpoint_that_lacks_a_value_is_refused():
    checkpoint = types.SimpleNamespace(step=4, tensors={}, state={"best": None})
    with pytest.raises(ValueError, match="step 4 is damaged: it lacks `his"):
        Progress.read(checkpoint, None)
