"""Outputs that are not numbers have no metrics, and no answer."""

import types

import numpy as np
import pytest

from tests.text import models
from tf_adapters import heads
from tf_adapters.common.errors import NonFiniteError
from tf_adapters.data.examples import Examples
from tf_adapters.training import judging
from tf_adapters.training.jax_runs_loop import RunsLoop


def test_outputs_that_are_nan_have_no_accuracy():
    head = heads.Classification(("no", "yes"))
    targets = np.array([0, 1, 0])
    examples = Examples([[1]] * 3, None, targets=targets, pad_id=0)
    outputs = [np.array([1.0, 0.0]), np.full(2, np.nan), np.array([0.0, 1.0])]
    with pytest.raises(NonFiniteError, match="NaN for 1 examples.*example 1"):
        judging.judge(head, ("accuracy",), outputs, examples, False)
    outputs[1] = np.array([0.0, 1e30])
    values, _ = judging.judge(head, ("accuracy",), outputs, examples, False)
    assert values == {"accuracy": pytest.approx(2 / 3)}


def test_of_runs_that_train_together_only_this_one_fails():
    loop = types.SimpleNamespace(
        model=types.SimpleNamespace(head=heads.Classification(("no", "yes"))),
        metric_names=("accuracy",),
        settings=types.SimpleNamespace(evaluate_loss=False),
    )
    member = types.SimpleNamespace(error="")
    examples = Examples([[1]], None, targets=np.array([0]), pad_id=0)
    outputs = [np.full(2, np.nan)]
    found = RunsLoop._judge(loop, member, outputs, examples)
    assert found == ({}, {})
    assert "NaN for 1 examples" in member.error


def test_a_text_model_of_nan_does_not_answer():
    model = models.text_model()
    model.fit(models.TEXTS, models.CLASSES, verbose=0)
    bias = model.adapter_model.trained_variables()["head/bias"]
    bias.assign(np.array([0.0, np.nan]))
    with pytest.raises(NonFiniteError, match="NaN for 6 examples"):
        model.answer(models.TEXTS)
    with pytest.raises(NonFiniteError, match="NaN for 6 examples"):
        model.evaluate(models.TEXTS, models.CLASSES)
