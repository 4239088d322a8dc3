"""Compares loaded encoders with PyTorch's outputs, and tests errors."""

import dataclasses
import functools
import json
import shutil

import keras
import keras_hub
import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save_file

from tests.fixtures import huggingface_folders
from tests.references import encoder_numpy
from tf_adapters.common.errors import UserError
from tf_adapters.encoders import huggingface
from tf_adapters.encoders import keras_hub_families
from tf_adapters.encoders import load as load_lib
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.encoders.encoder import encoder_fingerprint
from tf_adapters.encoders.modernbert import ModernBertBackbone
from tf_adapters.models.adapted_encoder import AdaptedEncoder

pytestmark = pytest.mark.integration


@functools.cache
def load(name):
    if name == "minilm":
        return load_lib.load_encoder(name)
    return load_lib.load_encoder(huggingface_folders.folder(name))


def weights_of(encoder):
    return {v.path: v.numpy() for v in encoder.backbone.weights}


def reference_states(encoder, features, weights=None, **changes):
    settings = {
        "activation": encoder.activation,
        "epsilon": encoder.layer_norm_epsilon,
        "num_heads": encoder.backbone.num_heads,
        **changes,
    }
    weights = weights_of(encoder) if weights is None else weights
    return encoder_numpy.encode(weights, features, **settings)


def distance(states, outputs, features):
    """Largest difference at a token, over all hidden states."""
    tokens = features["padding_mask"] == 1
    pairs = zip(states, outputs["hidden_states"], strict=True)
    return max(np.abs(a - b)[tokens].max() for a, b in pairs)


@pytest.mark.parametrize("name", [*huggingface_folders.NAMES, "minilm"])
def test_weights_and_settings_give_the_outputs_of_pytorch(name):
    encoder, _ = load(name)
    features, outputs = huggingface_folders.expected(name)
    states = reference_states(encoder, features)
    assert np.abs(outputs["hidden_states"]).max() > 1
    assert distance(states, outputs, features) < 1e-5
    if encoder.has_pooler:
        pooled = encoder_numpy.pool(weights_of(encoder), states[-1])
        np.testing.assert_allclose(
            pooled, outputs["pooled_output"], rtol=0, atol=1e-5
        )


@pytest.mark.parametrize("name", [*huggingface_folders.NAMES, "minilm"])
def test_adapted_encoder_gives_the_outputs_of_pytorch(name):
    encoder, _ = load(name)
    features, outputs = huggingface_folders.expected(name)
    result = AdaptedEncoder(encoder)(features, return_hidden_states=True)
    states = [keras.ops.convert_to_numpy(x) for x in result["hidden_states"]]
    assert distance(states, outputs, features) < 1e-5


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("bert", {"activation": "gelu_tanh"}),
        ("bert_gelu_new", {"activation": "gelu"}),
        ("bert_gelu_new", {"epsilon": 1e-12}),
        ("distilbert_classifier", {"activation": "gelu"}),
    ],
)
def test_comparison_notices_a_wrong_setting(name, wrong):
    encoder, _ = load(name)
    features, outputs = huggingface_folders.expected(name)
    states = reference_states(encoder, features, **wrong)
    assert distance(states, outputs, features) > 5e-5


@pytest.mark.parametrize("name", huggingface_folders.NAMES)
def test_comparison_notices_any_wrong_weight(name):
    encoder, _ = load(name)
    features, outputs = huggingface_folders.expected(name)
    weights = weights_of(encoder)
    for path, weight in weights.items():
        # A key's bias shifts all scores of a query alike: no effect. The
        # pooler is behind the hidden states.
        if path.startswith("pooled_dense") or path.endswith("key/bias"):
            continue
        damaged = {**weights, path: weight + 0.05 * np.sign(weight)}
        states = reference_states(encoder, features, weights=damaged)
        assert distance(states, outputs, features) > 1e-4, path


@pytest.mark.parametrize("name", ["roberta_classifier", "xlm_roberta"])
def test_token_type_row_is_added_to_every_position(name):
    encoder, _ = load(name)
    stored = load_file(huggingface_folders.folder(name) / "model.safetensors")
    by_name = {k.removeprefix("roberta."): v for k, v in stored.items()}
    row = by_name["embeddings.token_type_embeddings.weight"][0]
    positions = by_name["embeddings.position_embeddings.weight"]
    assert np.abs(row).max() > 0.5
    np.testing.assert_array_equal(
        weights_of(encoder)["embeddings/position_embedding/embeddings"],
        positions[2:] + row,
    )


@pytest.mark.parametrize(
    ("name", "has_pooler"),
    [
        ("bert", True),
        ("minilm", True),
        ("bert_without_pooler", False),
        ("roberta_bare", False),
        ("electra", False),
    ],
)
def test_has_pooler_only_where_one_was_trained(name, has_pooler):
    encoder, _ = load(name)
    assert encoder.has_pooler is has_pooler
    pooler = weights_of(encoder).get("pooled_dense/kernel")
    if pooler is not None:
        assert bool(np.any(pooler)) is has_pooler


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bert", (0.1, 0.1, 0.1)),
        ("bert_gelu_new", (0.2, 0.3, 0.2)),
        ("distilbert_bare", (0.15, 0.05, 0.0)),
    ],
)
def test_dropout_rates_are_those_of_the_config(name, expected):
    encoder, _ = load(name)
    received = (
        encoder.hidden_dropout,
        encoder.attention_dropout,
        encoder.output_dropouts[0],
    )
    assert received == expected


def test_output_dropouts_follow_a_hidden_dropout_that_is_replaced():
    encoders = [load(name)[0] for name in ("bert", "distilbert_bare")]
    found = [
        dataclasses.replace(encoder, hidden_dropout=0.4).output_dropouts
        for encoder in encoders
    ]
    # DistilBERT has a rate of its own after attention.
    assert found == [(0.4, 0.4), (0.0, 0.4)]


def test_number_of_segments_is_that_of_the_config():
    backbone = load("bert_without_pooler")[0].backbone
    assert backbone.num_segments == 3


# Of those that the reference computes.
@pytest.mark.parametrize(
    "backbone_class",
    [
        cls
        for cls in keras_hub_families.FAMILIES
        if cls
        not in (
            keras_hub.models.AlbertBackbone,
            keras_hub.models.DebertaV3Backbone,
            ModernBertBackbone,
        )
    ],
)
def test_presets_settings_are_what_kerashub_computes(backbone_class):
    """A canary: KerasHub may change what `FAMILIES` says about it."""
    backbone = tiny_backbone(backbone_class)
    rng = np.random.default_rng(0)
    for weight in backbone.weights:
        scale = 0.01 if "layer_norm" in weight.path else 0.3
        weight.assign(rng.normal(size=weight.shape, scale=scale))
    features = {
        "token_ids": rng.integers(0, 20, (2, 6)),
        "segment_ids": rng.integers(0, 2, (2, 6)),
        "padding_mask": np.array([[1] * 6, [1] * 4 + [0] * 2]),
    }
    names = {tensor.name for tensor in backbone.inputs}
    outputs = backbone({name: features[name] for name in names})
    if isinstance(outputs, dict):
        outputs = outputs["sequence_output"]
    encoder = Encoder(
        "tiny", backbone, **keras_hub_families.fields_of(backbone)
    )
    states = reference_states(encoder, features)
    tokens = features["padding_mask"] == 1
    outputs = keras.ops.convert_to_numpy(outputs)
    assert np.abs(states[-1] - outputs)[tokens].max() < 1e-6


def tiny_backbone(backbone_class):
    sizes = {
        "num_layers": 1,
        "num_heads": 2,
        "hidden_dim": 8,
        "intermediate_dim": 16,
        "max_sequence_length": 12,
    }
    if backbone_class is keras_hub.models.ElectraBackbone:
        return backbone_class(vocab_size=20, embedding_dim=4, **sizes)
    return backbone_class(vocabulary_size=20, **sizes)


TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "film"]


def test_loads_electra_from_a_kerashub_folder(tmp_path):
    backbone = tiny_backbone(keras_hub.models.ElectraBackbone)
    backbone.save_to_preset(str(tmp_path))
    tokenizer = keras_hub.models.ElectraTokenizer(TOKENS)
    tokenizer.save_to_preset(str(tmp_path))
    encoder, loaded = load_lib.load_encoder(tmp_path)
    assert type(encoder.backbone) is keras_hub.models.ElectraBackbone
    assert (encoder.activation, encoder.has_pooler) == ("gelu_tanh", False)
    for path, value in weights_of(encoder).items():
        original = {v.path: v.numpy() for v in backbone.weights}[path]
        np.testing.assert_array_equal(value, original)
    assert loaded(["a good film"]) == [[5, 6, 7]]


def test_kerashub_folder_without_a_tokenizer(tmp_path):
    backbone = tiny_backbone(keras_hub.models.ElectraBackbone)
    backbone.save_to_preset(str(tmp_path))
    with pytest.raises(ValueError, match="save_to_preset"):
        load_lib.load_encoder(tmp_path)


def test_kerashub_folder_of_another_kind(tmp_path):
    backbone = keras_hub.models.FNetBackbone(
        20, num_layers=1, hidden_dim=8, intermediate_dim=16
    )
    backbone.save_to_preset(str(tmp_path))
    with pytest.raises(ValueError, match="Received: FNetBackbone"):
        keras_hub_families.fields_of(backbone)


@pytest.mark.parametrize("dtype", ["half", 16, "bf16" * 99])
def test_what_is_no_policy_is_answered_in_a_sentence(dtype):
    with pytest.raises(UserError, match="mixed_bfloat16.*Received: .{1,100}$"):
        load_lib.load_encoder(huggingface_folders.folder("bert"), dtype)


@pytest.mark.parametrize("policy", ["bfloat16", "float16"])
def test_keras_policy_in_half_precision_leaves_weights_in_float32(policy):
    """The encoder is then the one that adapters were trained on."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        encoder, _ = load_lib.load_encoder(huggingface_folders.folder("bert"))
    finally:
        keras.config.set_dtype_policy(before)
    assert encoder.backbone.dtype_policy.name == f"mixed_{policy}"
    assert encoder_fingerprint(encoder) == (
        encoder_fingerprint(load("bert")[0])
    )


def test_dtype_is_the_backbones_policy():
    encoder, _ = load_lib.load_encoder(
        huggingface_folders.folder("bert"), dtype="mixed_bfloat16"
    )
    block = encoder.backbone.transformer_layers[0]
    assert block.dtype_policy.name == "mixed_bfloat16"
    assert {w.dtype for w in encoder.backbone.weights} == {"float32"}
    assert encoder_fingerprint(encoder) == (
        encoder_fingerprint(load("bert")[0])
    )


def test_fingerprint_is_stable_over_versions():
    """Saved adapters contain it, so it must not change."""
    assert encoder_fingerprint(load("bert")[0]) == (
        "97d4a1d007c29fe912e6efa39440b40fc275c2ceedd42f84fc8f968b71489b9d"
    )


def test_fingerprint_changes_with_every_weight_and_setting():
    encoder, _ = load_lib.load_encoder(huggingface_folders.folder("bert"))
    fields = {f: getattr(encoder, f) for f in encoder.__dataclass_fields__}
    seen = {encoder_fingerprint(encoder)}
    for change in ({"activation": "relu"}, {"layer_norm_epsilon": 1e-5}):
        other = Encoder(**{**fields, **change})
        seen.add(encoder_fingerprint(other))
    for weight in encoder.backbone.weights:
        value = weight.numpy()
        value.flat[-1] += 1e-3
        weight.assign(value)
        seen.add(encoder_fingerprint(encoder))
    assert len(seen) == 3 + len(encoder.backbone.weights)


def test_table_of_encoders_begins_with_the_default():
    assert next(iter(load_lib.ENCODERS)) == "minilm"
    assert "roberta_base_en" in load_lib.ENCODERS
    assert all(isinstance(line, str) for line in load_lib.ENCODERS.values())


@pytest.fixture
def folder(tmp_path):
    source = huggingface_folders.folder("bert")
    return shutil.copytree(source, tmp_path / "checkpoint")


def change_config(folder, **changes):
    path = folder / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({k: v for k, v in config.items() if v != "-"}))


def change_weights(folder, change):
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt2"}, "bert, roberta, xlm-roberta, distilbert, el"),
        ({"model_type": "gpt2"}, "Received: model_type='gpt2'"),
        ({"model_type": "-"}, "describes no encoder"),
        ({"hidden_act": "mish"}, "gelu_new.*Received: hidden_act='mish'"),
        ({"hidden_size": "-"}, r"lacks the keys \['hidden_size'\]"),
        ({"position_embedding_type": "relative_key"}, "relative_key"),
        ({"is_decoder": True}, "decoder"),
        ({"vocab_size": 70}, r"\(70, 24\).*Received: shape \(67, 24\)"),
        ({"num_hidden_layers": 3}, "16 of 55 tensors are missing"),
        ({"num_hidden_layers": 1}, "does not describe"),
        ({"type_vocab_size": 1}, "token_type_embeddings.*does not fit"),
    ],
)
def test_config_that_does_not_fit(folder, changes, message):
    change_config(folder, **changes)
    with pytest.raises(ValueError, match=message):
        load_lib.load_encoder(folder)


def test_missing_config(folder):
    (folder / "config.json").unlink()
    with pytest.raises(ValueError, match="config.json` is missing"):
        load_lib.load_encoder(folder)


def test_broken_config(folder):
    (folder / "config.json").write_text("{")
    with pytest.raises(ValueError, match="not valid JSON"):
        load_lib.load_encoder(folder)


def test_truncated_weights(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="damaged or incomplete"):
        load_lib.load_encoder(folder)


def test_missing_tensor(folder):
    name = "encoder.layer.1.output.dense.bias"
    change_weights(folder, lambda weights: weights.pop(name))
    with pytest.raises(ValueError, match=f"1 of 39 tensors.*{name}"):
        load_lib.load_encoder(folder)


def test_missing_weights_and_pickled_weights(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="model.safetensors` is missing"):
        load_lib.load_encoder(folder)
    (folder / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(ValueError, match="Convert it to safetensors"):
        load_lib.load_encoder(folder)


def test_weights_in_parts_with_old_names_in_half_precision(folder):
    """Uses bert-base-uncased's names of norms, in several files."""
    original = weights_of(load("bert")[0])
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    renamed = {
        f"bert.{name}".replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): weight.astype("float16")
        for name, weight in weights.items()
    }
    names = sorted(renamed)
    parts = {"one.safetensors": names[:20], "two.safetensors": names[20:]}
    for part, held in parts.items():
        save_file({name: renamed[name] for name in held}, folder / part)
    index = {name: part for part, held in parts.items() for name in held}
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": index})
    )
    encoder, _ = load_lib.load_encoder(folder)
    for path, value in weights_of(encoder).items():
        expected = original[path].astype("float16").astype("float32")
        np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("minilmm", "Did you mean `minilm`"),
        ("bert_base_en_uncase", "Did you mean `bert_base_en_uncased`"),
        ("no/such/folder", "There is no folder `no/such/folder`"),
    ],
)
def test_unknown_names(name, message):
    with pytest.raises(ValueError, match=message):
        load_lib.load_encoder(name)


def test_every_activation_of_a_checkpoint_is_known_to_the_layers():
    from tf_adapters.layers import activations

    for name in huggingface.ACTIVATIONS.values():
        activations.get_activation(name)


def test_a_rest_of_pretraining_is_not_read(folder):
    def add(weights):
        word = weights["embeddings.word_embeddings.weight"]
        weights["embeddings.word_embeddings._weight"] = word * 2

    change_weights(folder, add)
    encoder, _ = load_lib.load_encoder(folder)
    assert encoder.fingerprint == load("bert")[0].fingerprint
