"""Compares Houlsby and Pfeiffer with the `adapters` library, with gradients.

`tests/fixtures/make_adapters_fixtures.py` made the fixtures.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
import tensorflow as tf

from tests import library_names
from tf_adapters.encoders.load import load_encoder
from tf_adapters.methods import Houlsby
from tf_adapters.methods import Pfeiffer
from tf_adapters.methods.method import EncoderShape
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.variable_groups import count_weights

FIXTURES = Path(__file__).parents[1] / "fixtures" / "adapters"
ACTIVATIONS = {
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "relu": "relu",
}
CASES = sorted(
    path.parent.name for path in FIXTURES.glob("*/example.safetensors")
)


def _method(config):
    options = {
        "reduction_factor": config["reduction_factor"],
        "activation": ACTIVATIONS[config["non_linearity"]],
        "leave_out": tuple(config["leave_out"]),
    }
    return Houlsby(**options) if config["mh_adapter"] else Pfeiffer(**options)


def _load(case, dtype=None):
    config = json.loads((FIXTURES / case / "adapter_config.json").read_text())
    model_type = config["model_type"]
    folder = FIXTURES / "encoders" / model_type
    encoder, _ = load_encoder(folder, dtype=dtype)
    model = adapt(encoder, _method(config["config"]))
    weights = load_file(FIXTURES / case / "adapter.safetensors")
    named = list(library_names.of(model, model_type, "fixture"))
    for name, variable, transposed in named:
        if ".adapters." in name:
            value = weights.pop(name)
            variable.assign(value.T if transposed else value)
    assert not weights
    return model, named


@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients_are_the_librarys(case):
    model, named = _load(case)
    example = load_file(FIXTURES / case / "example.safetensors")
    mask = example["padding_mask"][:, :, None]
    features = {tensor.name for tensor in model.encoder.embeddings.inputs}
    features = {k: example[k] for k in features | {"padding_mask"}}
    with tf.GradientTape() as tape:
        tape.watch([variable.value for _, variable, _ in named])
        output = model(features, training=False)["sequence_output"]
        loss = tf.reduce_sum(output * example["loss_weights"] * mask)
    np.testing.assert_allclose(
        output * mask, example["last_hidden_state"] * mask, atol=1e-5
    )
    np.testing.assert_allclose(loss, example["loss"], rtol=1e-5, atol=1e-5)
    gradients = tape.gradient(loss, [v.value for _, v, _ in named])
    expected = load_file(FIXTURES / case / "gradients.safetensors")
    assert set(expected) == {name for name, _, _ in named}
    for (name, _, transposed), gradient in zip(named, gradients, strict=True):
        wanted = expected[name].T if transposed else expected[name]
        np.testing.assert_allclose(
            gradient, wanted, rtol=1e-5, atol=1e-5, err_msg=name
        )


@pytest.mark.parametrize("case", CASES[::3])
def test_in_bfloat16_they_are_the_librarys_in_float32(case):
    """Within 3 % of a hidden vector's length; bfloat16 rounds by 0.4 %."""
    model, _ = _load(case, "mixed_bfloat16")
    example = load_file(FIXTURES / case / "example.safetensors")
    names = {tensor.name for tensor in model.encoder.embeddings.inputs}
    features = {k: example[k] for k in names | {"padding_mask"}}
    output = tf.cast(model(features)["sequence_output"], tf.float32)
    there = example["padding_mask"] == 1
    expected = example["last_hidden_state"][there]
    difference = np.linalg.norm(output.numpy()[there] - expected, axis=-1)
    assert 0 < (difference / np.linalg.norm(expected, axis=-1)).max() < 0.03


@pytest.mark.parametrize(
    "row",
    json.loads((FIXTURES / "parameter_counts.json").read_text()),
    ids=lambda row: f"{row['shape']}-{row['config']}-{row['units']}",
)
def test_parameter_counts_are_the_librarys(row):
    cls = Houlsby if row["config"] == "double_seq_bn" else Pfeiffer
    width = row["hidden_size"]
    slots = cls(reduction_factor=row["reduction_factor"]).make_slots(
        EncoderShape(row["num_hidden_layers"], width, 4 * width)
    )
    layers = [slot for block in slots for slot in block.values()]
    for layer in layers:
        layer.build((None, None, width))
    variables = [v for layer in layers for v in layer.variables]
    assert count_weights(variables) == row["weights"]
