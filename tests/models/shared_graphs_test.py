"""Tests that blocks run by shared graphs compute the same as by themselves."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.methods import cases
from tf_adapters import heads
from tf_adapters.layers import shared_graphs
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.stateless_seeds import StatelessSeeds
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.training import graphs as training_graphs

HEAD = heads.Classification(("no", "yes", "maybe"), dropout_rate=0.1)
LABELS = np.array([0, 2, 1])
# Number of graphs for three blocks. The last block computes one token only.
NUM_GRAPHS = {
    "full": 2,
    "houlsby": 2,
    "lora": 2,
    "adapter_bias_l0_shared": 2,
    "diff_pruning": 2,
    "fusion": 2,
    # The slot of each block takes other columns of one matrix.
    "prefix_tuning": 3,
}
FAMILIES = ("roberta", "distilbert", "electra", "mpnet", "deberta", "albert")


def _model(name, family="bert"):
    encoder = tiny.encoder(family, dropout=0.3, num_blocks=3)
    model = AdapterModel(encoder, cases.EVERY[name], HEAD)
    tiny.randomize([v for v in model.weights if model.is_added(v)], 0.1)
    return model


def _graphs(model):
    return shared_graphs.SharedGraphs(
        training_graphs.traced_by_value,
        [
            *model.trained_variables().values(),
            *model.reparameterization.computed(),
        ],
    )


def _loss(model, graphs, tokens=7):
    features = tiny.batch(model.encoder_info, tokens=tokens)
    with shared_graphs.sharing(graphs):
        outputs = model(features, training=True, seed=np.array([3, 4]))
    return tf.reduce_sum(HEAD.loss(LABELS, outputs))


def _loss_and_gradients(model, graphs):
    trained = model.trained_variables()
    values = [variable.value for variable in trained.values()]
    with tf.GradientTape() as tape:
        loss = _loss(model, graphs)
    gradients = map(tf.convert_to_tensor, tape.gradient(loss, values))
    return loss, dict(zip(trained, gradients, strict=True))


def _check_equal(model, num_graphs):
    loss, gradients = _loss_and_gradients(model, None)
    graphs = _graphs(model)
    again, found = _loss_and_gradients(model, graphs)
    np.testing.assert_allclose(again, loss, rtol=1e-6)
    for key, gradient in gradients.items():
        np.testing.assert_allclose(
            found[key], gradient, rtol=1e-5, atol=1e-6, err_msg=key
        )
    assert len(graphs) == num_graphs


@pytest.mark.parametrize("name", NUM_GRAPHS)
def test_loss_and_gradients_are_equal_with_dropout(name):
    """So each block has its own weights, and its own dropout masks."""
    _check_equal(_model(name), NUM_GRAPHS[name])


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_blocks_of_all_families_share_graphs(family):
    _check_equal(_model("pfeiffer", family), 2)


@pytest.mark.slow
def test_local_and_global_attention_have_graphs_of_their_own():
    """The second block has local attention, the first has no norm."""
    _check_equal(_model("houlsby", "modernbert"), 3)


class _Shift(Slot):
    """Adds a number, which is no weight."""

    def __init__(self, number, **kwargs):
        super().__init__(**kwargs)
        self.number = number

    def call(self, x, context, training=None):
        return x + self.number, {}


@pytest.mark.parametrize(("numbers", "count"), [([1, 1, 2], 2), ([1, 2, 3], 3)])
def test_blocks_whose_slots_differ_share_no_graph(numbers, count):
    encoder = tiny.encoder(num_blocks=3)
    slots = [{"after_ffn": _Shift(number)} for number in numbers]
    adapted = AdaptedEncoder(encoder, slots)
    graphs = shared_graphs.SharedGraphs(training_graphs.traced_by_value, ())
    outputs = []
    for context in contextlib.nullcontext(), shared_graphs.sharing(graphs):
        with context:
            output = adapted(tiny.batch(encoder), training=False)
        outputs.append(output["sequence_output"])
    np.testing.assert_allclose(*outputs, atol=1e-6)
    assert len(graphs) == count


def test_a_block_without_its_adapters_has_another_graph():
    """Texts of another length are traced again, and then not without them."""
    model = _model("houlsby")
    graphs = _graphs(model)
    losses = []
    for blocks, tokens in ([], 7), ([0], 7), ([0], 5), ([], 7), ([], 5):
        with model.without(blocks):
            loss = _loss(model, graphs, tokens)
            expected = _loss(model, None, tokens)
        np.testing.assert_allclose(loss, expected, rtol=1e-6)
        losses.append(float(loss))
    assert losses[0] == losses[3] != losses[1]
    assert len(graphs) == 3


def test_dropout_far_from_the_first_draw_is_the_same(monkeypatch):
    """There, the seeds of a block are not consecutive."""
    monkeypatch.setattr(StatelessSeeds, "DRAWS_PER_PASS", 8)
    model = _model("houlsby")
    losses = [float(_loss(model, graphs)) for graphs in (None, _graphs(model))]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
