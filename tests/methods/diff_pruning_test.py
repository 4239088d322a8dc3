"""Compares diff pruning with its formulas."""

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file
import tensorflow as tf

from tests import stored
from tests import tiny
from tests.references import reparameterizations_numpy as reference
from tf_adapters import heads
from tf_adapters.layers.stateless_seeds import StatelessSeeds
from tf_adapters.methods import DiffPruning
from tf_adapters.methods import Houlsby
from tf_adapters.methods.diff_pruning import SparseDiff
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt

pytestmark = pytest.mark.integration

LOW, HIGH = -1.5, 1.5
GATES = {
    "temperature": 1.0,
    "stretch_low": LOW,
    "stretch_high": HIGH,
    "learning_rate_multiplier": 4.0,
}
HEAD = heads.Classification(("no", "yes"), dropout_rate=0.0)
WEIGHTS = 5824  # Of the tiny encoder, without its pooler.


def _layer(structured, seed):
    layer = SparseDiff((6, 5), GATES, structured)
    layer.build()
    tiny.randomize(layer.weights, scale=0.5)
    if structured:
        # Its gate lies between 0 and 1, or nothing has a gradient.
        noise = 0.5
        if seed is not None:
            seeds = StatelessSeeds(seed)
            seeds.next()  # The elements' own gates.
            noise = _noise((), seeds)
        logit = 0.2 - np.log(noise / (1 - noise))
        layer.group_gate.scaled_log_alpha.assign(logit / 4)
    return layer


def _noise(shape, seeds):
    noise = keras.random.uniform(shape, 1e-6, 1 - 1e-6, seed=seeds)
    return np.asarray(noise, "float64")


def _gates(layer, seeds):
    """Returns gates and derivatives, each gate's and the group's."""

    def of(gates):
        noise = 0.5 if seeds is None else _noise(gates.shape, seeds)
        log_alpha = 4 * np.float64(gates.scaled_log_alpha.numpy())
        return reference.gate(log_alpha, noise, LOW, HIGH)

    own = of(layer.gates)
    return own, of(layer.group_gate) if layer.group_gate else (1.0, 0.0)


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize("seed", [(3, 1), (3, 4), None])
def test_value_and_gradients_are_the_papers(structured, seed):
    layer = _layer(structured, seed)
    theta, gradient = np.random.default_rng(0).normal(size=(2, 6, 5))
    seeds = [None if seed is None else StatelessSeeds(seed) for _ in range(2)]
    with tf.GradientTape() as tape:
        value = layer.call(tf.constant(theta, "float32"), seeds[0])
        loss = tf.reduce_sum(value * gradient.astype("float32"))
    w = np.float64(layer.difference.numpy())
    (z, dz), (group, dgroup) = _gates(layer, seeds[1])
    assert 0 < np.mean(z == 0) < 1 and 0 < group < 1 or not structured
    np.testing.assert_allclose(
        value, reference.difference(theta, w, z, group), rtol=1e-5, atol=1e-5
    )
    expected = [gradient * group * z, 4 * gradient * group * w * dz]
    if structured:
        expected.append(4 * np.sum(gradient * z * w) * dgroup)
    stored = [layer.difference, layer.gates.scaled_log_alpha]
    if structured:
        stored.append(layer.group_gate.scaled_log_alpha)
    actual = tape.gradient(loss, [variable.value for variable in stored])
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def _model(**options):
    options = {"gate_learning_rate_multiplier": 4.0, **options}
    return adapt(tiny.encoder(), DiffPruning(**options), HEAD)


@pytest.mark.parametrize("structured", [True, False])
def test_penalty_counts_the_weights_expected_to_differ(structured):
    model = _model(l0_lambda=0.01, structured=structured)
    start = reference.probability_open(5.0, LOW, HIGH)
    expected = 0.01 * WEIGHTS * start ** (1 + structured)
    np.testing.assert_allclose(model.penalty(), expected, rtol=1e-5)
    tiny.randomize(model.trained_variables().values())
    expected = 0.0
    for layer in model.reparameterization.functions:
        own, group = (
            reference.probability_open(
                4 * gates.scaled_log_alpha.numpy(), LOW, HIGH
            )
            if gates
            else 1.0
            for gates in (layer.gates, layer.group_gate)
        )
        expected += 0.01 * np.sum(group * own)
    np.testing.assert_allclose(model.penalty(), expected, rtol=1e-5)


def _random_model(**options):
    """Returns a model whose gates and differences have values of all kinds."""
    model = _model(**options)
    tiny.randomize(model.trained_variables().values())
    return model


def _train(model, steps):
    """Trains without a graph; returns the loss of each step."""
    features = tiny.batch(model.encoder_info, size=8)
    variables = list(model.trained_variables().values())
    optimizer = keras.optimizers.Adam(0.05)
    losses = []
    for step in range(steps):
        with tf.GradientTape() as tape:
            outputs = model(features, training=True, seed=[1, 1024 * step])
            loss = tf.reduce_sum(model.head.loss(np.arange(8) % 2, outputs))
            loss = loss + model.penalty()
        gradients = tape.gradient(loss, [v.value for v in variables])
        optimizer.apply(gradients, variables)
        losses.append(float(loss))
    return losses


def _changes(model):
    """Returns all differences from the pretrained weights as one row."""
    start = tiny.encoder()
    before = {v.path: v.numpy() for v in start.backbone.weights}
    model.fold()
    changes = [
        (variable.numpy() - before[variable.path]).ravel()
        for variable in model.encoder_variables_read()
    ]
    model.unfold()
    return np.concatenate(changes)


@pytest.mark.parametrize("share", [0.005, 0.1, 1.0, 0.0])
def test_pruning_keeps_the_largest_differences_and_exactly_that_many(share):
    model = _random_model(share=share)
    before = _changes(model)
    model.start_last_phase()
    after = _changes(model)
    count = int(share * WEIGHTS)
    assert len(after) == WEIGHTS
    largest = np.argsort(-np.abs(before), kind="stable")[:count]
    # Elements whose gates closed in training are not differences.
    largest = largest[np.abs(before[largest]) > 0]
    np.testing.assert_array_equal(np.flatnonzero(after), np.sort(largest))
    np.testing.assert_allclose(after[largest], before[largest], atol=1e-6)
    assert len(largest) == count or share == 1.0


@pytest.mark.slow
def test_the_mask_stays_while_the_rest_trains_on(tmp_path):
    model = _random_model(share=0.05)
    model.start_last_phase()
    before = _changes(model)
    losses = _train(model, 4)
    after = _changes(model)
    assert losses[-1] < losses[0]
    np.testing.assert_array_equal(after != 0, before != 0)
    moved = np.abs(after - before)[before != 0]
    assert (moved > 1e-3).mean() > 0.9
    # The loaded model has the same mask, and keeps it.
    saving.save_adapter(model, tmp_path / "adapter")
    loaded = saving.load_adapter(tmp_path / "adapter", tiny.encoder())
    np.testing.assert_array_equal(_changes(loaded), after)
    _train(loaded, 1)
    np.testing.assert_array_equal(_changes(loaded) != 0, before != 0)


def test_the_folder_holds_exactly_the_differences(tmp_path):
    model = _random_model(share=0.005)
    model.start_last_phase()
    _train(model, 1)
    features = tiny.batch(model.encoder_info)
    expected = np.asarray(model(features))
    saving.save_adapter(model, tmp_path / "adapter")
    tensors = load_file(tmp_path / "adapter" / "adapter.safetensors")
    values = [v for n, v in tensors.items() if n.endswith("/values")]
    assert sum(np.count_nonzero(value) for value in values) == 29
    assert sum(value.size for value in values) == 29 == int(0.005 * WEIGHTS)
    assert not any("log_alpha" in name for name in tensors)
    loaded = saving.load_adapter(tmp_path / "adapter", tiny.encoder())
    np.testing.assert_array_equal(loaded(features), expected)
    assert loaded.method.report(loaded) == {
        "weights_of_encoder": WEIGHTS,
        "weights_that_differ": 29,
        "share_that_differs": 29 / WEIGHTS,
    }


def test_open_gates_between_0_and_1_are_saved_exactly(tmp_path):
    model = _random_model()
    features = tiny.batch(model.encoder_info)
    expected = np.asarray(model(features))
    saving.save_adapter(model, tmp_path / "adapter")
    loaded = saving.load_adapter(tmp_path / "adapter", tiny.encoder())
    np.testing.assert_array_equal(loaded(features), expected)


_PREFIX = "transformer_layer_0.self_attention_layer.query.kernel"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop(f"{_PREFIX}/open"), f"Missing: {_PREFIX}/open"),
        (
            lambda t: t.update({f"{_PREFIX}/values": np.zeros(1, "float32")}),
            rf"`{_PREFIX}/values` has shape \(1,",
        ),
        (
            lambda t: t.update({f"{_PREFIX}/difference": np.zeros(1)}),
            f"Unexpected: {_PREFIX}/difference",
        ),
        (
            lambda t: t.update({f"{_PREFIX}/open": np.array([256], "int32")}),
            f"`{_PREFIX}/open` must hold",
        ),
    ],
)
def test_packed_differences_load_strictly(tmp_path, change, message):
    folder = tmp_path / "adapter"
    saving.save_adapter(_random_model(share=0.5), folder)
    stored.change_weights(folder, change)
    with pytest.raises(saving.AdapterError, match=message):
        saving.load_adapter(folder, tiny.encoder())


@pytest.mark.parametrize("last_phase", [0.0, 0.5, 1.0])
def test_the_last_phase_begins_within_training(last_phase):
    method = DiffPruning(last_phase=last_phase)
    steps = [method.gating.last_phase_step(total) for total in (1, 2, 39)]
    wanted = {0.0: [1, 2, 39], 0.5: [1, 1, 20], 1.0: [1, 1, 1]}
    assert steps == wanted[last_phase]


@pytest.mark.parametrize("last_phase", [0.0, 0.5, 1.0])
def test_the_phases_are_all_of_training(last_phase):
    model = _model(last_phase=last_phase, last_phase_learning_rate_multiplier=3)
    steps = {0.0: [39, 0], 0.5: [20, 19], 1.0: [1, 38]}[last_phase]
    assert model.phases(39) == list(zip(steps, (1.0, 3), strict=True))
    assert adapt(tiny.encoder(), Houlsby(), HEAD).phases(39) == [(39, 1.0)]


@pytest.mark.parametrize("name", ["share", "last_phase"])
def test_options_that_mean_nothing_are_refused(name):
    with pytest.raises(ValueError, match=f"{name}=1.5"):
        DiffPruning(**{name: 1.5})
    with pytest.raises(ValueError, match="must be positive. Received: 0"):
        DiffPruning(last_phase_learning_rate_multiplier=0)


@pytest.mark.slow
def test_training_from_an_adapter_chooses_again_what_differs(tmp_path):
    """As after pretraining; from its gates, fixed, it never could."""
    model = _random_model(share=0.05)
    model.start_last_phase()
    saving.save_adapter(model, tmp_path / "adapter")
    before = _changes(model)
    model = _model(share=0.05)
    saving.start_from(model, tmp_path / "adapter")
    np.testing.assert_allclose(_changes(model), before, atol=1e-6)
    _train(model, 8)
    model.start_last_phase()
    after = _changes(model)
    assert np.count_nonzero(after) == int(0.05 * WEIGHTS)
    assert 10 < np.count_nonzero((before == 0) & (after != 0))
