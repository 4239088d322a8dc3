"""What holds for every method."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.methods.cases import CASES
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.models import saving
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.variable_groups import count_weights

HEAD = heads.Classification(("no", "yes", "maybe"), dropout_rate=0.0)
HEAD_WEIGHTS = 3 * (tiny.WIDTH + 1)
LABELS = np.array([0, 2, 1])

every_method = pytest.mark.parametrize(
    ("method", "num_weights"), CASES.values(), ids=CASES.keys()
)


def _train(model, steps=2):
    """Trains on random labels; two steps, since a vector starts at zero."""
    optimizer = keras.optimizers.Adam(0.05)
    variables = list(model.trained_variables().values())
    features = tiny.batch(model.encoder_info)
    for step in range(steps):
        with tf.GradientTape() as tape:
            outputs = model(features, training=True, seed=[1, 1024 * step])
            losses = model.head.loss(LABELS, outputs)
            loss = tf.reduce_sum(losses) + model.penalty()
        gradients = tape.gradient(loss, [v.value for v in variables])
        optimizer.apply(gradients, variables)


def test_every_method_is_here():
    tested = {type(method) for method, _ in CASES.values()}
    # Fusion needs trained adapters: tests/models/fusion_model_test.py.
    assert tested | {methods.Fusion} == set(methods.METHODS.values())


@every_method
def test_config_round_trip(method, num_weights):
    assert methods.from_config(methods.to_config(method)) == method


@every_method
def test_parameter_count_equals_the_formula(method, num_weights):
    model = adapt(tiny.encoder(), method, HEAD)
    variables = model.trained_variables().values()
    assert count_weights(variables) == num_weights + HEAD_WEIGHTS


@every_method
def test_training_changes_the_declared_set_and_nothing_else(
    method, num_weights
):
    model = adapt(tiny.encoder(), method, HEAD)
    before = {v.path: v.numpy().copy() for v in model.variables}
    # A vector starts at zero, and a drawn gate may be closed for a while.
    _train(model, steps=6)
    changed = {
        v.path
        for v in model.variables
        if not np.array_equal(v.numpy(), before[v.path])
    }
    # The sum of softmax over keys does not depend on the keys' bias.
    changed |= {
        path
        for path in model.trained_variables()
        if "key/bias" in path.replace(".", "/")
    }
    assert changed == set(model.trained_variables())


@every_method
def test_starts_near_the_identity(method, num_weights):
    encoder = tiny.encoder()
    features = tiny.batch(encoder)
    expected = AdaptedEncoder(encoder)(features)["sequence_output"]
    actual = adapt(encoder, method).encode(features)["sequence_output"]
    np.testing.assert_allclose(actual, expected, atol=0.05)


@every_method
def test_reload_is_exact(method, num_weights, tmp_path):
    model = adapt(tiny.encoder(), method, HEAD)
    features = tiny.batch(model.encoder_info)
    untrained = np.asarray(model(features))
    _train(model, steps=3)
    expected = np.asarray(model(features))
    assert np.abs(expected - untrained).max() > 0.02
    saving.save_adapter(model, tmp_path / "adapter")
    loaded = saving.load_adapter(tmp_path / "adapter", tiny.encoder())
    assert loaded.method == method and loaded.head == HEAD
    np.testing.assert_array_equal(loaded(features), expected)


@every_method
def test_graph_and_eager_agree(method, num_weights):
    model = adapt(tiny.encoder(), method, HEAD)
    tiny.randomize(model.trained_variables().values())
    features = tiny.batch(model.encoder_info)
    graph = tf.function(lambda inputs: model(inputs, training=False))
    np.testing.assert_allclose(graph(features), model(features), atol=1e-5)


@every_method
def test_trained_variables_are_float32_on_a_bfloat16_encoder(
    method, num_weights
):
    model = adapt(tiny.encoder(dtype="mixed_bfloat16"), method, HEAD)
    dtypes = {v.dtype for v in model.trained_variables().values()}
    assert dtypes == {"float32"}
    features = tiny.batch(model.encoder_info)
    assert model(features).dtype == "float32"
    hidden = model.encode(features)["sequence_output"]
    assert keras.backend.standardize_dtype(hidden.dtype) == "bfloat16"


@every_method
def test_first_token_shortcut_is_exact(method, num_weights):
    model = adapt(tiny.encoder(), method)
    tiny.randomize(model.trained_variables().values())
    features = tiny.batch(model.encoder_info)
    whole = model.encode(features)["sequence_output"][:, :1]
    short = model.encode(features, first_token_only=True)["sequence_output"]
    np.testing.assert_allclose(short, whole, atol=1e-5)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_every_family_trains(family):
    model = adapt(tiny.encoder(family), methods.Houlsby(units=4), HEAD)
    before = {k: v.numpy().copy() for k, v in model.trained_variables().items()}
    _train(model)
    for name, variable in model.trained_variables().items():
        assert not np.array_equal(variable.numpy(), before[name]), name
