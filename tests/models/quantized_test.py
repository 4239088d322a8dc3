"""Tests models on quantized encoders."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.encoders import quantization
from tf_adapters.encoders.encoder import as_encoder
from tf_adapters.layers import quantized
from tf_adapters.models import saving
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.bank_model import load_bank

HEAD = heads.Classification(("no", "yes"), dropout_rate=0.0)
# All ways in which methods touch an encoder, but for kernels.
METHODS = {
    "houlsby": methods.Houlsby(units=4),
    "lora": methods.LoRA(rank=2, projections=("query", "ffn_up", "ffn_down")),
    "adapter_bias": methods.AdapterBias(),
    "bitfit": methods.BitFit(),
    "layer_norm": methods.LayerNorm(),
    "prefix": methods.PrefixTuning(3),
    "ia3": methods.IA3(),
}


def _encoder(mode, family="bert"):
    encoder = tiny.encoder(family, num_blocks=1)
    quantization.quantize_encoder(encoder, mode)
    return encoder


def _model(mode, method=None):
    model = adapt(_encoder(mode), method or METHODS["houlsby"], HEAD)
    tiny.randomize(model.trained_variables().values())
    return model


def _float_twin(encoder, family="bert"):
    """Returns an encoder with the rounded weights as floats."""
    twin = tiny.encoder(family, num_blocks=1)
    rounded = {layer.path: layer for layer in _quantized_layers(encoder)}
    by_path = {layer.path: layer for layer in twin.backbone._flatten_layers()}
    for path, layer in rounded.items():
        own = by_path[path]
        if hasattr(own, "embeddings"):
            own.embeddings.assign(quantized.embeddings_of(layer))
        else:
            shape = own.kernel.shape
            is_output = path.endswith("attention_output")
            inputs = np.prod(shape[:-1]) if is_output else shape[0]
            matrix = quantized.kernel_of(layer, int(inputs))
            own.kernel.assign(np.reshape(matrix, shape))
    return twin


def _quantized_layers(encoder):
    return [
        layer
        for layer in encoder.backbone._flatten_layers()
        if isinstance(layer, quantization._KINDS)
    ]


def _cases(names, fast):
    """Returns the pairs of a name and a mode; those not in `fast` are slow."""
    return [
        pytest.param(
            name, mode, marks=() if (name, mode) in fast else pytest.mark.slow
        )
        for name in names
        for mode in ("int8", "int4")
    ]


@pytest.mark.parametrize(
    ("family", "mode"),
    _cases(
        tiny.FAMILIES,
        [("bert", "int8"), ("deberta", "int4"), ("albert", "int8")],
    ),
)
def test_equals_keras_own_quantized_backbone(family, mode):
    encoder = _encoder(mode, family)
    features = tiny.batch(encoder)
    expected = encoder.backbone(features)
    if isinstance(expected, dict):
        expected = expected["sequence_output"]
    outputs = AdaptedEncoder(encoder)(features)["sequence_output"]
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=3e-6)
    exact = AdaptedEncoder(tiny.encoder(family, num_blocks=1))(features)
    change = np.abs(exact["sequence_output"] - outputs).max()
    assert (1e-3 if mode == "int8" else 0.1) < change < 3


@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_kernels_of_several_groups_equal_keras_layer(mode):
    layers = [keras.layers.Dense(6), keras.layers.Embedding(5, 300)]
    for layer in layers:
        layer.build((None, 300))
        tiny.randomize(layer.weights)
        layer.quantize(mode, config=quantization._CONFIGS[mode])
    dense, embedding = layers
    matrix = quantized.kernel_of(dense, 300)
    zeros = dense(np.zeros((1, 300)))
    np.testing.assert_allclose(
        matrix, dense(np.eye(300)) - zeros, rtol=0, atol=1e-5
    )
    np.testing.assert_allclose(
        quantized.embeddings_of(embedding),
        embedding(np.arange(5)),
        rtol=0,
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("name", "mode"),
    _cases(METHODS, [("houlsby", "int8"), ("lora", "int4")]),
)
def test_gradients_are_those_of_the_rounded_weights_as_floats(name, mode):
    model = _model(mode, METHODS[name])
    twin = adapt(_float_twin(model.encoder_info), METHODS[name], HEAD)
    values = model.trained_variables()
    for key, variable in twin.trained_variables().items():
        variable.assign(values[key])
    features = tiny.batch(model.encoder_info)
    found, expected = (_gradients(m, features) for m in (model, twin))
    assert found.keys() == expected.keys()
    assert any(np.abs(value).max() > 1e-3 for value in found.values())
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-4, atol=1e-5)


def _gradients(model, features):
    variables = model.trained_variables()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(features) ** 2)
    names = list(variables)
    gradients = tape.gradient(loss, [variables[n].value for n in names])
    return dict(zip(names, map(np.array, gradients), strict=True))


def test_training_changes_what_the_method_declares():
    encoder = _encoder("int8")
    before = {v.path: v.numpy() for v in encoder.backbone.weights}
    model = adapt(encoder, METHODS["bitfit"], HEAD)
    model.compile("sgd", keras.losses.CategoricalCrossentropy(from_logits=True))
    features = tiny.batch(encoder, size=4)
    model.fit(features, np.eye(2)[[0, 1, 1, 0]], verbose=0)
    changed = {
        v.path
        for v in encoder.backbone.weights
        if not np.array_equal(before[v.path], v)
    }
    trained = {v.path for v in model.declared_encoder_variables()}
    assert changed and changed <= trained
    encoder.restore()
    for variable in encoder.backbone.weights:
        np.testing.assert_array_equal(variable, before[variable.path])


@pytest.mark.parametrize(
    ("name", "mode"), [("houlsby", "int4"), ("bitfit", "int8")]
)
def test_an_adapter_and_a_keras_file_load_again(name, mode, tmp_path):
    model = _model(mode, METHODS[name])
    encoder = model.encoder_info
    assert encoder.fingerprint == tiny.encoder(num_blocks=1).fingerprint
    features = tiny.batch(encoder)
    expected = np.array(model(features))
    saving.save_adapter(model, tmp_path / "adapter")
    card = (tmp_path / "adapter" / "README.md").read_text()
    assert f'quantize="{mode}"' in card
    again = saving.load_adapter(tmp_path / "adapter", _encoder(mode))
    np.testing.assert_array_equal(again(features), expected)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(features), expected)
    assert again.encoder_info.quantization == mode
    assert again.encoder_info.fingerprint == encoder.fingerprint


def test_adapters_load_on_the_weights_that_they_were_trained_on(tmp_path):
    saving.save_adapter(_model("int8"), tmp_path / "int8")
    for mode, received in ((None, "not quantized"), ("int4", "int4")):
        with pytest.raises(AdapterError, match=f"int8, but .* {received}"):
            saving.load_adapter(tmp_path / "int8", _encoder(mode))
    saving.save_adapter(_model(None), tmp_path / "float")
    model = saving.load_adapter(tmp_path / "float", _encoder("int8"))
    assert model.encoder_info.quantization == "int8"
    config = tmp_path / "float" / "adapter_config.json"
    values = json.loads(config.read_text())
    del values["encoder"]["quantization"]  # As in version 0.2.0.
    config.write_text(json.dumps(values))
    saving.load_adapter(tmp_path / "float", _encoder(None))


@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_a_bank_adds_a_trained_bias_to_the_rounded_pooler(mode, tmp_path):
    head = heads.Classification(("no", "yes"), reads="pooled_output")
    model = adapt(_encoder(mode), methods.BitFit(), head)
    tiny.randomize(model.trained_variables().values())
    saving.save_adapter(model, tmp_path / "run" / "adapter")
    encoder = _encoder(mode)
    bank = load_bank([tmp_path / "run"], encoder)
    features = tiny.batch(encoder)
    found = bank({**features, "adapter_ids": np.zeros(3, "int32")})
    np.testing.assert_allclose(found, model(features), atol=1e-5)


@pytest.mark.parametrize(
    ("method", "name", "mode"),
    [
        (methods.Full(), "full", "int8"),
        (methods.Full(mixout=0.5), "full", "int4"),
        (methods.TopLayers(k=1), "top_layers", "int4"),
        (methods.DiffPruning(), "diff_pruning", "int8"),
    ],
)
def test_methods_that_change_kernels_are_refused(method, name, mode):
    with pytest.raises(UserError, match=f"{name} changes .* quantized to"):
        adapt(_encoder(mode), method, HEAD)


@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_products_are_not_folded(mode):
    model = _model(mode, METHODS["lora"])
    features = tiny.batch(model.encoder_info)
    expected = np.array(model(features))
    with pytest.raises(UserError, match="without `fold"):
        model.fold()
    with model.reparameterization.folded_meanwhile():
        np.testing.assert_array_equal(model(features), expected)


@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_hidden_tokens_are_predicted_with_the_rounded_table(mode):
    head = heads.MaskedLM(tiny.VOCABULARY, tiny.WIDTH, activation="gelu")
    encoder = _encoder(mode)
    model, twin = (
        adapt(e, methods.Houlsby(units=4), head)
        for e in (encoder, _float_twin(encoder))
    )
    values = model.trained_variables()
    for key, variable in twin.trained_variables().items():
        variable.assign(values[key])
    features = {
        **tiny.batch(encoder),
        "masked_positions": np.array([[1], [2], [0]], "int32"),
    }
    np.testing.assert_allclose(
        model(features), twin(features), rtol=0, atol=1e-4
    )


@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_sizes_count_scales(mode):
    encoder = tiny.encoder()
    floats = encoder.backbone.count_params()
    assert quantization.count_bytes(encoder.backbone) == 4 * floats
    quantization.quantize_encoder(encoder, mode)
    assert quantization.count_weights(encoder.backbone) == floats
    stored = sum(v.numpy().nbytes for v in encoder.backbone.weights)
    assert quantization.count_bytes(encoder.backbone) == stored < 2 * floats


def test_what_keras_quantized_is_refused():
    encoder = tiny.encoder(num_blocks=1)
    model = adapt(encoder, METHODS["houlsby"], HEAD)
    encoder.backbone.get_layer("pooled_dense").quantize("int8")
    for call in (
        lambda: adapt(encoder, METHODS["houlsby"], HEAD),
        lambda: adapt(as_encoder(encoder.backbone), METHODS["houlsby"], HEAD),
        lambda: model(tiny.batch(encoder)),
        lambda: quantization.quantize_encoder(encoder, "int8"),
    ):
        with pytest.raises(UserError, match="The encoder is quantized: .*load"):
            call()


def test_an_unknown_mode_is_refused():
    with pytest.raises(UserError, match="Unknown .*`int2`.* Known: int8, int4"):
        quantization.check_mode("int2")
