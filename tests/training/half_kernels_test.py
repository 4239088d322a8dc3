"""Tests of the copies of frozen kernels in half precision."""

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.runs import toy_runs
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.training.half_kernels import HalfKernels

HEAD = heads.Classification(labels=("a", "b"))


def parts(method, dtype="mixed_bfloat16", family="bert"):
    """Returns a model and the copies of its frozen kernels."""
    encoder = tiny.encoder(family, dtype=dtype)
    model = AdapterModel(encoder, method, HEAD)
    tiny.randomize(model.trainable_variables)
    variables = dict(model.trained_variables()).values()
    return model, HalfKernels(model, tf.distribute.get_strategy(), variables)


@pytest.mark.parametrize("family", ["bert", "deberta", "albert"])
def test_outputs_are_the_same_to_the_last_bit(family):
    model, copies = parts(methods.Houlsby(units=4), family=family)
    inputs = tiny.batch(model.encoder_info)
    expected = np.asarray(model(inputs))
    copies.refresh()
    with copies.scope():
        np.testing.assert_array_equal(model(inputs), expected)


@pytest.mark.parametrize(
    ("method", "copied"),
    [
        (methods.Houlsby(units=4), 12),
        (methods.LoRA(rank=2), 8),  # Folding writes to query and value.
        (methods.Full(), 0),
    ],
)
def test_kernels_that_may_change_are_not_copied(method, copied):
    _, copies = parts(method)
    assert len(copies._kernels) == copied


def test_kernels_are_not_cast_in_a_step():
    model, copies = parts(methods.HeadOnly())
    inputs = tiny.batch(model.encoder_info)

    def num_casts():
        with copies.scope():
            graph = tf.function(model).get_concrete_function(inputs).graph
        return sum(
            op.type == "Cast" and len(op.inputs[0].shape) == 2
            for op in graph.get_operations()
        )

    before = num_casts()
    copies.refresh()
    assert before - num_casts() == 12


def test_refresh_follows_a_change():
    model, copies = parts(methods.HeadOnly())
    inputs = tiny.batch(model.encoder_info)
    copies.refresh()
    for kernel, _ in model.encoder.blocks[0].kernels().values():
        kernel.assign(2 * kernel)
    copies.refresh()
    expected = np.asarray(model(inputs))
    with copies.scope():
        np.testing.assert_array_equal(model(inputs), expected)


@pytest.mark.parametrize("remat", [False, True])
def test_training_is_the_same_to_the_last_bit(monkeypatch, remat):
    trained = []
    for _ in range(2):
        trainer = toy_runs.trainer(
            toy_runs.config(epochs=1, precision="mixed_bfloat16", remat=remat),
            dropout=0.1,
        )
        before = tiny.values(trainer.variables)
        toy_runs.fit(trainer)
        trained.append(tiny.values(trainer.variables))
        # The second trainer has no copies.
        monkeypatch.setattr(HalfKernels, "refresh", lambda self: None)
    assert trainer.half_kernels._kernels
    assert not trainer.half_kernels._copies
    for with_copies, without, start in zip(*trained, before, strict=True):
        np.testing.assert_array_equal(with_copies, without)
        assert np.any(without != start)


def test_trainers_of_an_encoder_share_the_copies():
    model, first = parts(methods.HeadOnly())
    variables = dict(model.trained_variables()).values()
    other = HalfKernels(model, tf.distribute.get_strategy(), variables)
    first.refresh()
    other.refresh()
    assert first._copies
    for one, another in zip(first._copies, other._copies, strict=True):
        assert one is another


def test_nothing_is_copied_in_float32():
    model, copies = parts(methods.HeadOnly(), dtype="float32")
    copies.refresh()
    assert not copies._kernels
