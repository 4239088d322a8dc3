"""Tests that the wrapped encoder computes like the checkpoint's model."""

import keras
import numpy as np
import pytest

from tests import tiny
from tests.fixtures import huggingface_folders
from tf_adapters.encoders.keras_hub_families import fields_of
from tf_adapters.encoders.load import load_encoder
from tf_adapters.methods import Houlsby
from tf_adapters.methods import PrefixTuning
from tf_adapters.methods import PromptTuning
from tf_adapters.methods.method import EncoderShape
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.adapter_model import adapt

SEED = np.array([3, 1024])


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_empty_slots_equal_the_backbone(family):
    """The canary: it fails where KerasHub changes what this file reads."""
    encoder = tiny.encoder(family)
    fields = fields_of(encoder.backbone)
    assert (encoder.activation, encoder.layer_norm_epsilon) == (
        fields["activation"],
        fields["layer_norm_epsilon"],
    )
    features = tiny.batch(encoder)
    expected = encoder.backbone(features)
    if not isinstance(expected, dict):
        expected = {"sequence_output": expected}
    outputs = AdaptedEncoder(encoder)(features)
    first = outputs.pop("first_token_output")
    np.testing.assert_array_equal(first, outputs["sequence_output"][:, 0])
    assert set(outputs) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(outputs[name], value, rtol=0, atol=3e-6)


@pytest.mark.parametrize(
    "name", [*huggingface_folders.NAMES, *huggingface_folders.LATER]
)
def test_equals_the_checkpoints_own_model(name):
    features, expected = huggingface_folders.expected(name)
    encoder, _ = load_encoder(huggingface_folders.folder(name))
    outputs = AdaptedEncoder(encoder)(features, return_hidden_states=True)
    tokens = features["padding_mask"].astype(bool)
    hidden_states = zip(
        outputs["hidden_states"], expected["hidden_states"], strict=True
    )
    for actual, wanted in hidden_states:
        np.testing.assert_allclose(
            np.asarray(actual)[tokens], wanted[tokens], rtol=0, atol=1e-5
        )
    # KerasHub's RoBERTa and XLM-R have no pooler; PyTorch's have.
    if "pooled_output" in outputs:
        np.testing.assert_allclose(
            outputs["pooled_output"], expected["pooled_output"], atol=1e-5
        )


def test_minilm_equals_its_own_model():
    features, expected = huggingface_folders.expected("minilm")
    encoder, _ = load_encoder("minilm")
    outputs = AdaptedEncoder(encoder)(features)
    tokens = features["padding_mask"].astype(bool)
    np.testing.assert_allclose(
        np.asarray(outputs["sequence_output"])[tokens],
        expected["hidden_states"][-1][tokens],
        rtol=0,
        atol=1e-5,
    )


@pytest.fixture(scope="module")
def adapted():
    encoder = tiny.encoder()
    slots = Houlsby(units=4).make_slots(
        EncoderShape(tiny.BLOCKS, tiny.WIDTH, tiny.FFN_WIDTH)
    )
    layer = AdaptedEncoder(encoder, slots)
    tiny.randomize([v for s in slots for a in s.values() for v in a.variables])
    return layer, tiny.batch(encoder)


def test_first_token_alone_is_exact(adapted):
    layer, features = adapted
    whole = layer(features)
    short = layer(features, first_token_only=True)
    assert short["sequence_output"].shape[1] == 1
    np.testing.assert_allclose(
        short["sequence_output"][:, 0],
        whole["sequence_output"][:, 0],
        atol=2e-6,
    )
    np.testing.assert_allclose(
        short["pooled_output"], whole["pooled_output"], atol=2e-6
    )


@pytest.mark.parametrize("wish", ["return_hidden_states", "return_probes"])
def test_all_tokens_are_computed_where_somebody_looks(adapted, wish):
    layer, features = adapted
    outputs = layer(features, first_token_only=True, **{wish: True})
    assert outputs["sequence_output"].shape[1] == 7


def test_hidden_states_end_with_the_output(adapted):
    layer, features = adapted
    outputs = layer(features, return_hidden_states=True)
    assert len(outputs["hidden_states"]) == tiny.BLOCKS + 1
    np.testing.assert_array_equal(
        outputs["hidden_states"][-1], outputs["sequence_output"]
    )


def test_padding_changes_nothing(adapted):
    layer, features = adapted
    padded = {k: np.pad(v, ((0, 0), (0, 3))) for k, v in features.items()}
    mask = features["padding_mask"].astype(bool)
    np.testing.assert_allclose(
        np.asarray(layer(padded)["sequence_output"])[:, :7][mask],
        np.asarray(layer(features)["sequence_output"])[mask],
        atol=3e-6,
    )


def _training_output(use_dropout, seed):
    encoder = tiny.encoder(dropout=0.5)
    layer = AdaptedEncoder(encoder, use_dropout=use_dropout)
    features = tiny.batch(encoder)
    return np.asarray(
        layer(features, training=True, seed=seed)["sequence_output"]
    )


@pytest.mark.parametrize("stands", ["before", "after_first"])
def test_a_prompt_ignores_padding_on_the_left(stands):
    encoder = tiny.encoder("roberta")
    model = adapt(encoder, PromptTuning(3, stands=stands))
    features = tiny.batch(encoder, size=1, tokens=5)
    padded = {
        name: np.pad(value, ((0, 0), (4, 0)))
        for name, value in features.items()
    }
    expected, found = (
        np.asarray(model.encode(one)["sequence_output"])
        for one in (features, padded)
    )
    np.testing.assert_allclose(found[:, 4:], expected, atol=1e-5)


@pytest.mark.parametrize("method", [PrefixTuning(3), PromptTuning(3)])
def test_a_mask_may_be_of_truth_values(method):
    model = adapt(tiny.encoder(num_blocks=1), method)
    features = tiny.batch(model.encoder_info)
    of_truth = {**features, "padding_mask": features["padding_mask"] > 0}
    np.testing.assert_array_equal(
        model(of_truth)["sequence_output"], model(features)["sequence_output"]
    )


def test_dropout_follows_from_the_seed_alone():
    first = _training_output(True, SEED)
    np.testing.assert_array_equal(first, _training_output(True, SEED))
    assert np.abs(first - _training_output(True, SEED + 1)).max() > 0.1


def test_dropout_can_be_switched_off():
    np.testing.assert_array_equal(
        _training_output(False, SEED), _training_output(False, SEED + 1)
    )


def test_unknown_slot_is_refused():
    with pytest.raises(ValueError, match="before_attention"):
        slot = keras.layers.Identity()
        AdaptedEncoder(tiny.encoder(), [{"before_attention": slot}, {}])


def test_wrong_number_of_slots_is_refused():
    with pytest.raises(ValueError, match="each of the 2 blocks"):
        AdaptedEncoder(tiny.encoder(), [{}])


def test_bfloat16_stays_close_to_float32():
    encoder = tiny.encoder()
    features = tiny.batch(encoder)
    exact = AdaptedEncoder(encoder)(features)["sequence_output"]
    half = AdaptedEncoder(tiny.encoder(dtype="mixed_bfloat16"))(features)
    assert (
        keras.backend.standardize_dtype(half["sequence_output"].dtype)
        == "bfloat16"
    )
    assert (
        np.abs(
            np.asarray(exact)
            - np.asarray(keras.ops.cast(half["sequence_output"], "float32"))
        ).max()
        < 0.15
    )
