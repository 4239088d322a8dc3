"""Tests invariants of all methods."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.methods import cases
from tests.methods.cases import CASES
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.models import saving
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.variable_groups import count_weights

HEAD = heads.Classification(("no", "yes", "maybe"), dropout_rate=0.0)
HEAD_WEIGHTS = 3 * (tiny.WIDTH + 1)
LABELS = np.array([0, 2, 1])


@pytest.fixture(scope="module", params=CASES)
def name(request):
    """The name of a case. The scope of the module shares its fixtures."""
    return request.param


@dataclasses.dataclass
class _Life:
    """A model's steps from creation to reload, which tests examine."""

    model: AdapterModel
    num_trained: int
    from_encoder: float
    changed: set
    moved: float
    outputs: np.ndarray
    reloaded: AdapterModel


@pytest.fixture(scope="module")
def life(name, tmp_path_factory):
    method, _ = CASES[name]
    encoder = tiny.encoder()
    features = tiny.batch(encoder)
    bare = AdaptedEncoder(encoder)(features)["sequence_output"]
    # Unlucky initial weights make all units of a small bottleneck inactive,
    # and then its weights do not change.
    keras.utils.set_random_seed(0)
    model = adapt(encoder, method, HEAD)
    start = model.encode(features)["sequence_output"]
    untrained = np.asarray(model(features))
    before = {v.path: v.numpy().copy() for v in model.variables}
    # A vector starts at zero, and a drawn gate may be closed for a while.
    _train(model, steps=6)
    changed = {
        v.path
        for v in model.variables
        if not np.array_equal(v.numpy(), before[v.path])
    }
    outputs = np.asarray(model(features))
    folder = tmp_path_factory.mktemp("life") / "adapter"
    saving.save_adapter(model, folder)
    return _Life(
        model=model,
        num_trained=count_weights(model.trained_variables().values()),
        from_encoder=np.abs(np.asarray(start) - np.asarray(bare)).max(),
        changed=changed,
        moved=np.abs(outputs - untrained).max(),
        outputs=outputs,
        reloaded=saving.load_adapter(folder, tiny.encoder()),
    )


@pytest.fixture(scope="module")
def random_model(name):
    """Makes a model with large random trained weights."""
    model = adapt(tiny.encoder(), CASES[name][0], HEAD)
    tiny.randomize(model.trained_variables().values())
    return model


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
    ours = {
        cls
        for cls in methods.METHODS.values()
        if cls.__module__.startswith("tf_adapters.methods.")
    }
    # Fusion needs trained adapters: tests/models/fusion_model_test.py.
    assert tested | {methods.Fusion} == ours


@pytest.mark.parametrize("method", [m for m, _ in CASES.values()], ids=CASES)
def test_config_round_trip(method):
    assert methods.from_config(methods.to_config(method)) == method


def test_parameter_count_equals_the_formula(name, life):
    assert life.num_trained == CASES[name][1] + HEAD_WEIGHTS


def test_training_changes_the_declared_set_and_nothing_else(life):
    trained = {v.path for v in life.model.trained_variables().values()}
    # The sum of softmax over keys does not depend on the keys' bias.
    constant = {p for p in trained if "key/bias" in p.replace("--", "/")}
    assert life.changed | constant == trained


def test_starts_near_the_identity(name, life):
    is_near = life.from_encoder < 0.05
    assert is_near == (name not in cases.FAR_FROM_THE_ENCODER)


def test_reload_is_exact(name, life):
    assert life.moved > 0.02
    loaded = life.reloaded
    assert loaded.method == CASES[name][0] and loaded.head == HEAD
    features = tiny.batch(loaded.encoder_info)
    np.testing.assert_array_equal(loaded(features), life.outputs)


def test_graph_and_eager_agree(random_model):
    features = tiny.batch(random_model.encoder_info)
    graph = tf.function(
        lambda inputs: random_model(inputs, training=False), autograph=False
    )
    np.testing.assert_allclose(
        graph(features), random_model(features), atol=1e-5
    )


def test_first_token_shortcut_is_exact(random_model):
    features = tiny.batch(random_model.encoder_info)
    whole = random_model.encode(features)["first_token_output"]
    short = random_model.encode(features, first_token_only=True)
    np.testing.assert_allclose(short["first_token_output"], whole, atol=1e-5)


def test_trained_variables_are_float32_on_a_bfloat16_encoder(name):
    method, _ = CASES[name]
    model = adapt(tiny.encoder(dtype="mixed_bfloat16"), method, HEAD)
    dtypes = {v.dtype for v in model.trained_variables().values()}
    assert dtypes == {"float32"}
    features = tiny.batch(model.encoder_info)
    assert model(features).dtype == "float32"
    hidden = model.encode(features)["sequence_output"]
    assert keras.backend.standardize_dtype(hidden.dtype) == "bfloat16"


def test_outputs_in_float16_are_close_to_float32s(name, random_model):
    encoder = tiny.encoder(dtype="mixed_float16")
    model = adapt(encoder, CASES[name][0], HEAD)
    pairs = zip(model.weights, random_model.weights, strict=True)
    for variable, value in pairs:
        variable.assign(value)
    features = tiny.batch(encoder)
    hidden = model.encode(features)["sequence_output"]
    assert keras.backend.standardize_dtype(hidden.dtype) == "float16"
    expected = random_model.encode(features)["sequence_output"]
    np.testing.assert_allclose(
        np.asarray(hidden, "float32"), expected, atol=1e-2
    )
    np.testing.assert_allclose(
        model(features), random_model(features), atol=1e-2
    )


@pytest.fixture
def half_policy():
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("bfloat16")
    yield
    keras.config.set_dtype_policy(before)


def test_trained_variables_are_float32_under_any_policy(name, half_policy):
    model = adapt(tiny.encoder(), CASES[name][0], HEAD)
    dtypes = {v.dtype for v in model.trained_variables().values()}
    assert dtypes == {"float32"}


def test_a_float32_encoder_computes_alike_under_any_policy(half_policy):
    """Weights that replace the encoder's are not rounded on the way, either."""
    method = methods.DiffPruning(l0_lambda=1e-4)
    model = adapt(tiny.encoder(num_blocks=1), method, HEAD)
    features = tiny.batch(model.encoder_info)
    tiny.randomize(model.trained_variables().values())
    found = np.asarray(model(features))
    keras.config.set_dtype_policy("float32")
    again = adapt(tiny.encoder(num_blocks=1), method, HEAD)
    tiny.randomize(again.trained_variables().values())
    np.testing.assert_array_equal(found, again(features))


@pytest.mark.parametrize(
    ("method", "weight"),
    [
        (methods.Houlsby(units=4), "embeddings_layer_norm/gamma"),
        (methods.Full(), "token_embedding/embeddings"),
    ],
)
def test_an_encoder_of_half_precision_does_not_train(method, weight):
    encoder = tiny.encoder(dtype="bfloat16", num_blocks=1)
    adapt(encoder, methods.Pfeiffer(units=4), HEAD)  # It trains none of it.
    with pytest.raises(UserError, match=f"`{weight}` is bfloat16.*mixed_bfloa"):
        adapt(encoder, method, HEAD)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_every_family_trains(family):
    model = adapt(tiny.encoder(family), methods.Houlsby(units=4), HEAD)
    before = {k: v.numpy().copy() for k, v in model.trained_variables().items()}
    _train(model)
    for name, variable in model.trained_variables().items():
        assert not np.array_equal(variable.numpy(), before[name]), name
