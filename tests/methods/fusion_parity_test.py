"""Compares fusion with the `adapters` library, with gradients.

`tests/fixtures/make_fusion_fixtures.py` made the fixtures.
"""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
import tensorflow as tf

from tf_adapters.encoders.load import load_encoder
from tf_adapters.methods.fusion import Fusion
from tf_adapters.models.adapter_model import AdapterModel

FIXTURES = Path(__file__).parents[1] / "fixtures"
PATHS = {"after_attention": "attention.output", "after_ffn": "output"}
CASES = [f"{place}_{n}" for place in ("pfeiffer", "houlsby") for n in (1, 2, 5)]


def _start(block, place):
    return f"bert.encoder.layer.{block}.{PATHS[place]}"


def _load_members(slot, weights, start):
    def of(name):
        return [
            weights[f"{start}.adapters.member{n}.{name}"]
            for n in range(slot.fusion.num_adapters)
        ]

    down = [kernel.T for kernel in of("adapter_down.0.weight")]
    slot.fusion.down_kernel.assign(np.concatenate(down, 1))
    slot.fusion.down_bias.assign(np.concatenate(of("adapter_down.0.bias")))
    up = [kernel.T for kernel in of("adapter_up.weight")]
    slot.fusion.up_kernel.assign(np.concatenate(up, 0))
    slot.fusion.up_bias.assign(np.stack(of("adapter_up.bias")))


def _trained(model):
    """Yields the library's name, our variable, and whether it is transposed."""
    for block, slots in enumerate(model.slots):
        for place, slot in slots.items():
            start = f"{_start(block, place)}.adapter_fusion_layer."
            start += ",".join(
                f"member{n}" for n in range(slot.fusion.num_adapters)
            )
            yield f"{start}.query.weight", slot.fusion.query_kernel, True
            yield f"{start}.query.bias", slot.fusion.query_bias, False
            yield f"{start}.key.weight", slot.fusion.key_kernel, True
            yield f"{start}.value.weight", slot.fusion.value_kernel, True


def _load(case, dtype=None):
    placement, number = case.split("_")
    folder = FIXTURES / "adapters" / "encoders" / "bert"
    encoder, _ = load_encoder(folder, dtype=dtype)
    method = Fusion(
        adapters=tuple(f"member{n}" for n in range(int(number))),
        placement=placement,
        units=8,
        activation={"pfeiffer": "relu", "houlsby": "silu"}[placement],
    )
    model = AdapterModel(encoder, method)
    weights = load_file(FIXTURES / "fusion" / case / "adapters.safetensors")
    for block, slots in enumerate(model.slots):
        for place, slot in slots.items():
            _load_members(slot, weights, _start(block, place))
    weights = load_file(FIXTURES / "fusion" / case / "fusion.safetensors")
    for name, variable, transposed in _trained(model):
        variable.assign(weights[name].T if transposed else weights[name])
    return model


def _compare(gradients, expected, model, prefix=""):
    for (name, _, transposed), gradient in zip(
        _trained(model), gradients, strict=True
    ):
        if prefix + name in expected:
            wanted = expected[prefix + name]
            wanted = wanted.T if transposed else wanted
            np.testing.assert_allclose(
                gradient, wanted, rtol=1e-5, atol=1e-5, err_msg=name
            )


@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients_are_the_librarys(case):
    model = _load(case)
    example = load_file(FIXTURES / "fusion" / case / "example.safetensors")
    mask = example["padding_mask"][:, :, None]
    features = {tensor.name for tensor in model.encoder.embeddings.inputs}
    features = {k: example[k] for k in features | {"padding_mask"}}
    values = [variable.value for _, variable, _ in _trained(model)]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(values)
        output = model(features, training=False)["sequence_output"]
        loss = tf.reduce_sum(output * example["loss_weights"] * mask)
        penalty = model.penalty()
    np.testing.assert_allclose(
        output * mask, example["last_hidden_state"] * mask, atol=1e-5
    )
    np.testing.assert_allclose(loss, example["loss"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(penalty, example["regularizer"], rtol=1e-5)
    expected = load_file(FIXTURES / "fusion" / case / "gradients.safetensors")
    _compare(tape.gradient(loss, values), expected, model)
    _compare(tape.gradient(penalty, values), expected, model, "regularizer.")


def test_in_bfloat16_it_is_the_librarys_in_float32():
    """Within 3 % of a hidden vector's length; bfloat16 rounds by 0.4 %."""
    model = _load("pfeiffer_5", "mixed_bfloat16")
    example = load_file(FIXTURES / "fusion/pfeiffer_5/example.safetensors")
    output = tf.cast(model(_features(example))["sequence_output"], tf.float32)
    there = example["padding_mask"] == 1
    expected = example["last_hidden_state"][there]
    difference = np.linalg.norm(output.numpy()[there] - expected, axis=-1)
    assert 0 < (difference / np.linalg.norm(expected, axis=-1)).max() < 0.03


def test_an_answer_in_bfloat16_does_not_depend_on_the_batch():
    """Neither does the order of the products, which rounds differently."""
    model = _load("pfeiffer_2", "mixed_bfloat16")
    example = load_file(FIXTURES / "fusion/pfeiffer_2/example.safetensors")
    alone = {k: v[:1] for k, v in _features(example).items()}
    among = {k: np.repeat(v, 64, axis=0) for k, v in alone.items()}
    one, many = (model(x)["sequence_output"] for x in (alone, among))
    np.testing.assert_array_equal(tf.cast(one, "float32")[0], many[0])


def _features(example):
    names = ("token_ids", "padding_mask", "segment_ids")
    return {name: example[name] for name in names}


def test_only_the_fusion_trains():
    model = _load("houlsby_2")
    names = {name.rsplit("/", 1)[-1] for name in model.trained_variables()}
    assert names == {"query_kernel", "query_bias", "key_kernel", "value_kernel"}
