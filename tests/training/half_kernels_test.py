"""Tests of the copies of frozen kernels in half precision."""

import numpy as np
import pytest
import tensorflow as tf

import tests.tiny as tiny
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
        (methods.Houlsby(units=4), 13),
        (methods.LoRA(rank=2), 9),  # Folding writes to query and value.
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
    assert before - num_casts() == 14  # The embeddings are read twice.


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


def test_nothing_is_copied_in_float32():
    model, copies = parts(methods.HeadOnly(), dtype="float32")
    copies.refresh()
    assert not copies._kernels


def test_embeddings_that_a_head_reads_are_not_copied():
    encoder = tiny.encoder(dtype="mixed_bfloat16")
    head = heads.MaskedLM(tiny.VOCABULARY, tiny.WIDTH)
    model = AdapterModel(encoder, methods.Houlsby(units=4), head)
    variables = dict(model.trained_variables()).values()
    copies = HalfKernels(model, tf.distribute.get_strategy(), variables)
    assert len(copies._kernels) == 12
