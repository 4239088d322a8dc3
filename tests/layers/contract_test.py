"""Tests Keras's expectations of layers, for all layers, slots and head layers.

Like KerasHub's `run_layer_test`: configuration and weights make an equal copy;
`build` takes a shape; a symbolic call has the shape of a real one; the layer
computes in the type of its input, with float32 weights; and one step of
training changes every trained weight.
"""

import importlib
import pkgutil

import keras
from keras import ops
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
import tf_adapters
from tf_adapters.data.examples import IGNORED
from tf_adapters.heads.choice_layer import ChoiceLayer
from tf_adapters.heads.linear import LinearLayer
from tf_adapters.heads.masked_lm_layer import MaskedLMLayer
from tf_adapters.heads.sentence_vector import TextVectorLayer
from tf_adapters.heads.tokens import TokenLayer
from tf_adapters.heads.windows import WindowsLayer
from tf_adapters.layers.adapter_bias import TokenWeight
from tf_adapters.layers.adapter_bias import Vector
from tf_adapters.layers.adapter_fusion import AdapterFusion
from tf_adapters.layers.bottleneck import Bottleneck
from tf_adapters.layers.composed_slots import AverageOfProjections
from tf_adapters.layers.composed_slots import AverageSlot
from tf_adapters.layers.composed_slots import StackSlot
from tf_adapters.layers.context import Context
from tf_adapters.layers.dense import dense
from tf_adapters.layers.gate import TextGate
from tf_adapters.layers.hard_concrete import HardConcreteGates
from tf_adapters.layers.mixout import Mixout
from tf_adapters.layers.normalization import layer_norm
from tf_adapters.layers.stateless_seeds import StatelessSeeds
from tf_adapters.methods.adapter_bias import Shift
from tf_adapters.methods.bottleneck_forms import FormSlot
from tf_adapters.methods.compacter import CompacterSlot
from tf_adapters.methods.compacter import KroneckerFactors
from tf_adapters.methods.diff_pruning import SparseDiff
from tf_adapters.methods.fusion import FusionSlot
from tf_adapters.methods.ia3 import Rescale
from tf_adapters.methods.invertible import Coupling
from tf_adapters.methods.lora import LoRAUpdate
from tf_adapters.methods.prefix_tuning import Prefix
from tf_adapters.methods.prefix_tuning import PrefixVectors
from tf_adapters.methods.projected_attention import ProjectedAttentionSlot
from tf_adapters.methods.projected_attention import Projections
from tf_adapters.methods.projected_attention import SmallAttention
from tf_adapters.methods.prompt_tuning import Prompt
from tf_adapters.methods.support.bottleneck_slots import BottleneckSlot

BATCH, TOKENS, WIDTH, FFN, WORDS = 2, 5, 8, 12, 11
GATES = {"temperature": 0.5, "stretch_low": -0.2, "stretch_high": 1.2}
_NUMBERS = np.random.default_rng(0)
TENSORS = {
    "x": _NUMBERS.normal(size=(BATCH, TOKENS, WIDTH)),
    "residual": _NUMBERS.normal(size=(BATCH, TOKENS, WIDTH)),
    "sublayer_output": _NUMBERS.normal(size=(BATCH, TOKENS, WIDTH)),
    "intermediate": _NUMBERS.normal(size=(BATCH, TOKENS, FFN)),
}
PADDING_MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "int32")
KERNEL = _NUMBERS.normal(size=(WIDTH, FFN)).astype("float32")
TABLE = _NUMBERS.normal(size=(WORDS, WIDTH)).astype("float32")


def _context(tensors, seeds):
    gamma, beta = np.ones(WIDTH, "float32"), np.zeros(WIDTH, "float32")
    return Context(
        padding_mask=PADDING_MASK,
        seeds=seeds,
        block_input=tensors["residual"],
        residual=tensors["residual"],
        intermediate=tensors["intermediate"],
        norm=lambda x, rows: layer_norm(
            x, ops.convert_to_tensor(gamma), ops.convert_to_tensor(beta), 1e-5
        ),
        sublayer_output=tensors["sublayer_output"],
    )


def _slot(layer, tensors, seeds):
    context = _context(tensors, seeds)
    return layer(tensors["x"], context=context, training=seeds is not None)[0]


def _projection(layer, tensors, seeds):
    def project(x):
        return dense(x, ops.convert_to_tensor(KERNEL))

    context = _context(tensors, seeds)
    return layer(tensors["x"], project=project, context=context)


def _keys_and_values(layer, tensors, seeds):
    keys, values, _ = layer(
        tensors["x"],
        values=tensors["residual"],
        context=_context(tensors, seeds),
    )
    return ops.concatenate([keys, values])


def _head(layer, tensors, seeds):
    sequence = tensors["x"]
    outputs = {
        "sequence_output": sequence,
        "first_token_output": sequence[:, 0],
        "padding_mask": PADDING_MASK,
        "token_embeddings": TABLE,
        "masked_positions": np.array([[1, 3], [2, IGNORED]]),
        "masked_ids": np.array([[4, 2], [0, IGNORED]]),
    }
    return layer(outputs, seeds=seeds)


def _choice(layer, tensors, seeds):
    # Two questions, of three choices and of two.
    x = ops.concatenate([tensors["x"][:, 0]] * 3)
    ids = np.array([[[1], [1], [1]], [[1], [1], [0]]])
    outputs = {"first_token_output": x, "padding_mask": ids, "token_ids": ids}
    return layer(outputs, seeds=seeds)


def _windows(layer, tensors, seeds):
    # Two texts, of two windows and of one.
    x = ops.concatenate([tensors["x"][:, 0]] * 2)
    mask = np.array([[[1, 1], [1, 0]], [[1, 1], [0, 0]]])
    return layer({"first_token_output": x, "padding_mask": mask}, seeds=seeds)


def _on_x(layer, tensors, seeds):
    return layer(tensors["x"])


def _with_seeds(layer, tensors, seeds):
    return layer(tensors["x"], seeds=seeds)


def _value(layer, tensors, seeds):
    """Of a layer that holds what it returns, or changes a weight."""
    if isinstance(layer, Vector):
        return layer.call()
    if isinstance(layer, HardConcreteGates):
        return layer.call(seeds)
    if isinstance(layer, KroneckerFactors):
        return layer.factors
    return layer.call(tensors["x"][0, 0], seeds)


SLOT, FLOAT32 = (None, None, WIDTH), "float32"
# The layer, the shape for `build`, how it is called, and the type of what it
# returns where that is not the type of what it reads.
CASES = [
    (Bottleneck(3, "relu", "normal", 0.02), SLOT, _on_x, None),
    (TokenWeight(WIDTH), SLOT, _with_seeds, None),
    (TokenWeight(WIDTH, GATES), SLOT, _with_seeds, None),
    (Vector(WIDTH), None, _value, FLOAT32),
    (HardConcreteGates((WIDTH,), **GATES), None, _value, FLOAT32),
    (AdapterFusion(2, 3, "relu"), SLOT, lambda *a: _on_x(*a)[0], None),
    (SparseDiff((WIDTH,), GATES, True), None, _value, None),
    (Mixout((WIDTH,), 0.5), None, _value, None),
    (
        TextGate(),
        SLOT,
        lambda layer, tensors, _: layer(tensors["x"], PADDING_MASK),
        None,
    ),
    (
        Projections(4),
        SLOT,
        lambda layer, tensors, _: layer.up(layer.down(tensors["x"]), None),
        None,
    ),
    (
        SmallAttention(WIDTH, 2),
        SLOT,
        lambda layer, tensors, seeds: layer(
            tensors["x"], tensors["x"], PADDING_MASK, seeds=seeds
        ),
        None,
    ),
    (LoRAUpdate(WIDTH, FFN, 2, 4.0, 0.1), SLOT, _projection, None),
    (LoRAUpdate(WIDTH, FFN, 2, 4.0, 0.1, True), SLOT, _projection, None),
    (Rescale(WIDTH, "input"), SLOT, _projection, None),
    (Rescale(FFN, "output"), SLOT, _projection, None),
    (
        Shift(Vector(WIDTH, name="v"), TokenWeight(FFN), "intermediate"),
        SLOT,
        _slot,
        None,
    ),
    (
        BottleneckSlot("normed_output", 3, "relu", "normal", 0.02),
        SLOT,
        _slot,
        None,
    ),
    (
        FormSlot(
            units=3,
            activation="gelu",
            new_norm="both",
            num_hidden_layers=2,
            use_gating=True,
            learned_scaling="channel",
            pretrained_norm="none",
        ),
        SLOT,
        _slot,
        None,
    ),
    (FusionSlot("residual", 3, 2, "relu", "dynamic", 2), SLOT, _slot, None),
    (Coupling(2), SLOT, _slot, None),
    (
        StackSlot([Coupling(2, name="one"), Coupling(2, name="two")]),
        SLOT,
        _slot,
        None,
    ),
    (
        AverageSlot(
            [Coupling(2, name="one"), Coupling(2, name="two")], [0.5, 0.2], 0.3
        ),
        SLOT,
        _slot,
        None,
    ),
    (
        AverageOfProjections(
            [LoRAUpdate(WIDTH, FFN, 2, 4.0, name="one")], [0.5], 0.5
        ),
        SLOT,
        _projection,
        None,
    ),
    (KroneckerFactors(2), SLOT, _value, FLOAT32),
    (
        CompacterSlot(KroneckerFactors(2, name="k"), "residual", 4, "relu"),
        SLOT,
        _slot,
        None,
    ),
    (
        PrefixVectors(3, 2, WIDTH, 4, "tanh"),
        None,
        lambda layer, *_: layer.call(1)[0],
        FLOAT32,
    ),
    (
        Prefix(PrefixVectors(3, 1, WIDTH, 0, "tanh", name="p"), 0, 0.1, True),
        SLOT,
        _keys_and_values,
        None,
    ),
    (Prompt(3), SLOT, _slot, None),
    (
        ProjectedAttentionSlot(
            Projections(4, name="p"), SmallAttention(4, 2, name="a"), "gelu"
        ),
        SLOT,
        _slot,
        None,
    ),
    (LinearLayer(3, "first_token", 0.1), SLOT, _head, FLOAT32),
    (LinearLayer(3, "first_token", 0.1, "tanh", 0.1), SLOT, _head, FLOAT32),
    (
        WindowsLayer(3, "first_token", 0.1, pooling="max"),
        SLOT,
        _windows,
        FLOAT32,
    ),
    (TokenLayer(3, 0.1), SLOT, _head, FLOAT32),
    (TokenLayer(3, 0.1, "gelu", 0.1), SLOT, _head, FLOAT32),
    (ChoiceLayer("first_token", 0.1), SLOT, _choice, FLOAT32),
    (ChoiceLayer("first_token", 0.1, "tanh", 0.1), SLOT, _choice, FLOAT32),
    (TextVectorLayer("mean"), SLOT, _head, FLOAT32),
    (MaskedLMLayer(WORDS, WIDTH, "gelu", 1e-5), SLOT, _head, FLOAT32),
]
each = pytest.mark.parametrize(
    ("layer", "shape", "call", "dtype"),
    CASES,
    ids=[f"{type(case[0]).__name__}_{i}" for i, case in enumerate(CASES)],
)


def _copy(layer):
    config = keras.saving.serialize_keras_object(layer)
    return keras.saving.deserialize_keras_object(config)


def _built(layer, shape):
    """Returns a copy with weights of its own, each of which matters."""
    copy = type(layer).from_config(layer.get_config())
    copy.build(shape)
    tiny.randomize(copy.weights)
    return copy


def _tensors(dtype="float32"):
    return {n: ops.convert_to_tensor(v, dtype) for n, v in TENSORS.items()}


def _all_classes(cls):
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _all_classes(subclass)


_OURS = [
    ["tf_adapters", name] for name in ("layers", "methods", "heads", "models")
]


def test_every_layer_has_a_case():
    for module in pkgutil.walk_packages(tf_adapters.__path__, "tf_adapters."):
        if module.name.split(".")[:2] in _OURS:
            importlib.import_module(module.name)
    ours = {
        cls
        for cls in _all_classes(keras.layers.Layer)
        if keras.saving.get_registered_name(cls).startswith("tf_adapters>")
        and cls.__module__.split(".")[:2] in _OURS
        and not issubclass(cls, keras.Model)
    }
    assert ours == {type(case[0]) for case in CASES}


@each
def test_no_weight_starts_with_the_numbers_of_another(
    layer, shape, call, dtype
):
    """An initializer draws the same numbers each time that it is called."""
    one = type(layer).from_config(layer.get_config())
    one.build(shape)
    values = [np.ravel(variable) for variable in one.weights]
    starts = [v[0] for v in values if len(v) == 1 or v[0] != v[-1]]
    assert len(set(starts)) == len(starts)


@each
def test_its_configuration_makes_an_equal_layer(layer, shape, call, dtype):
    one = _built(layer, shape)
    other = _copy(one)
    assert other.get_config() == one.get_config()
    assert (other.name, other.dtype_policy) == (one.name, one.dtype_policy)
    for variable, value in zip(other.weights, one.weights, strict=True):
        assert variable.name == value.name
        variable.assign(value)
    np.testing.assert_array_equal(
        call(other, _tensors(), None), call(one, _tensors(), None)
    )


@each
def test_a_symbolic_call_returns_the_shape(layer, shape, call, dtype):
    layer = _built(layer, shape)
    tensors = _tensors()
    graph = tf.function(lambda tensors: call(layer, tensors, None))
    symbolic = graph.get_concrete_function(tensors).structured_outputs
    assert symbolic.shape == call(layer, tensors, None).shape


@each
def test_it_computes_in_the_type_that_it_is_given(layer, shape, call, dtype):
    layer = _built(layer, shape)
    assert {w.dtype for w in layer.weights} <= {"float32"}
    exact = call(layer, _tensors(), None)
    half = call(layer, _tensors("bfloat16"), None)
    expected = dtype or "bfloat16"
    assert keras.backend.standardize_dtype(half.dtype) == expected
    np.testing.assert_allclose(
        ops.convert_to_numpy(ops.cast(half, "float32")),
        ops.convert_to_numpy(exact),
        rtol=0.05,
        atol=0.1,
    )


@each
def test_a_step_moves_every_weight_that_trains(layer, shape, call, dtype):
    layer = _built(layer, shape)
    weights = layer.trainable_weights
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(weights)
    before = tiny.values(weights)
    with tf.GradientTape() as tape:
        # Several passes: a gate that one draw shuts has no gradient there.
        loss = sum(_loss(layer, call, step) for step in range(8))
    gradients = tape.gradient(loss, [w.value for w in weights])
    optimizer.apply(gradients, weights)
    for variable, value in zip(weights, before, strict=True):
        moved = np.abs(variable.numpy() - value).max()
        assert 0 < moved < 1e3, variable.path


def _loss(layer, call, step):
    seeds = StatelessSeeds(ops.convert_to_tensor([3, step]))
    outputs = ops.cast(call(layer, _tensors(), seeds), "float32")
    # What is absent is a very large negative number.
    return ops.mean(ops.where(ops.abs(outputs) < 1e6, outputs, 0) ** 2)
