"""Tests Keras callbacks in the training loop."""

import json
import sys

import keras
import numpy as np
import pytest

from tests.runs import toy_runs
from tf_adapters.common.errors import ConfigError
from tf_adapters.runs.checkpoints import Checkpoint
from tf_adapters.training.callbacks import make_callbacks
from tf_adapters.training.loop import Loop

HERE = "tests.training.callbacks_test"


class Epochs(keras.callbacks.Callback):
    """Records its calls, except those for steps."""

    def __init__(self, note="", fails=False):
        super().__init__()
        if fails:
            raise TypeError("it was asked to")
        self.note, self.told = note, []

    def on_train_begin(self, logs=None):
        self.told.append(("begin", logs, self.params["epochs"]))

    def on_epoch_begin(self, epoch, logs=None):
        self.told.append(("epoch begin", epoch))

    def on_epoch_end(self, epoch, logs=None):
        rate = self.model.optimizer.learning_rate.numpy()
        self.told.append(("epoch end", epoch, logs, rate))

    def on_train_end(self, logs=None):
        self.told.append(("end", logs))


class Steps(Epochs):
    def on_train_batch_end(self, batch, logs=None):
        self.told.append(("step", batch, logs["loss"]))


class _From:
    """A recovery that stores the state after one step, or resumes from it."""

    def __init__(self, step=None, checkpoint=None):
        self.step, self.checkpoint = step, checkpoint

    def after_loop(self, progress, trainer, checks):
        if progress.step == self.step:
            state = progress.write(trainer)
            self.taken = Checkpoint(progress.step, *state)


def _run(callbacks, recovery=None, **train):
    trainer = toy_runs.trainer(toy_runs.config(**{"epochs": 2, **train}))
    records = []
    examples = toy_runs.examples()
    Loop(
        trainer,
        examples,
        examples,
        records.append,
        lambda _: None,
        recovery,
        callbacks=callbacks,
    ).run()
    return records


@pytest.mark.integration
def test_they_are_reported_what_is_logged_and_where_a_run_resumes():
    epochs, steps = make_callbacks(
        [f"{HERE}:Epochs", {"name": f"{HERE}:Steps", "note": "mine"}]
    )
    assert steps.note == "mine"
    recovery = _From(step=4)
    records = _run([epochs, steps], recovery)
    names = [told[0] for told in epochs.told]
    assert names == ["begin", *["epoch begin", "epoch end"] * 2, "end"]
    assert epochs.told[0] == ("begin", {"step": 0}, 2)
    assert [told[1] for told in epochs.told[1:5]] == [0, 0, 1, 1]
    logs = epochs.told[4][2]
    losses = [record for record in records if "loss" in record]
    for name, value in losses[-1].items():
        assert logs[name] == value
    assert (
        logs["validation/accuracy"] == (records[-1]["validation"]["accuracy"])
    )
    json.dumps(logs)
    assert epochs.told[-1][1] == logs
    told = [told for told in steps.told if told[0] == "step"]
    assert [step for _, step, _ in told] == list(range(6))
    assert np.mean([loss for _, step, loss in told[4:]]) == pytest.approx(
        losses[-1]["loss"], abs=0.1
    )

    (again,) = make_callbacks([f"{HERE}:Epochs"])
    _run([again], _From(checkpoint=recovery.taken))
    assert again.told[0][:2] == ("begin", {"step": 4})
    assert again.told[1] == ("epoch begin", 1)
    assert again.told[-1] == epochs.told[-1]


@pytest.mark.integration
def test_functions_are_called_and_added_epochs_count():
    (epochs,) = make_callbacks([f"{HERE}:Epochs"])
    steps = []
    (function,) = make_callbacks(
        [
            {
                "name": "keras.callbacks:LambdaCallback",
                "on_train_batch_end": lambda step, logs: steps.append(step),
            }
        ]
    )
    _run([epochs, function], epochs=1, min_steps=5)
    assert steps == list(range(6))
    assert epochs.told[0] == ("begin", {"step": 0}, 2)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ("mlflow", "is a list, for example"),
        ([3], "is a name, or a mapping of `name`"),
        ([{"patience": 3}], "is a name, or a mapping of `name`"),
        ([{"name": ["a"]}], "is a name, or a mapping of `name`"),
        ([".callbacks:A"], "no callback .*relative import"),
        (["mlflo"], "no callback .*mlflo.* names no module.*mlflow, wandb"),
        (["no_such_module:A"], "No module named"),
        ([f"{HERE}:Nothing"], "has no attribute"),
        (["os:getcwd"], "is not a subclass of `keras.callbacks.Callback`"),
        (["os:PathLike"], "is not a subclass of `keras.callbacks.Callback`"),
        ([{"name": f"{HERE}:Epochs", "fails": True}], "it was asked to"),
        ([{"name": f"{HERE}:Epochs", "fail": True}], "unexpected keyword"),
    ],
)
def test_what_is_no_callback_is_answered_in_a_sentence(items, message):
    with pytest.raises(ConfigError, match=message):
        make_callbacks(items)


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_a_package_that_lacks_is_named_with_its_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=rf"pip install 'tf_adapters\[{name}"):
        make_callbacks([name])
