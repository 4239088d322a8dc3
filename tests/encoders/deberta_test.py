"""DeBERTa-v3, whose positions are in attention only, and its tokenizer."""

import json
import shutil

import keras_hub
import numpy as np
import pytest
from safetensors.numpy import load_file
import sentencepiece

from tests.encoders import comparison
from tests.fixtures import huggingface_folders
from tests.fixtures.sentences import SENTENCES
from tests.interop import folders
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens.packing import TextPacker
from tf_adapters.encoders.load import load_encoder
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt

pytestmark = pytest.mark.integration

FOLDER = huggingface_folders.folder("deberta")


@pytest.fixture(scope="module")
def loaded():
    return load_encoder(FOLDER)


def test_longest_texts_and_padding_on_the_left(loaded):
    comparison.check_longest(loaded[0], "deberta")


def test_pieces_are_those_of_sentencepiece(loaded):
    """Ties are broken differently, so scores are compared."""
    original = sentencepiece.SentencePieceProcessor(
        model_file=str(FOLDER / "spm.model")
    )
    packer = TextPacker(loaded[1], 10_000)
    rows, segments = packer.tokenize_rows(list(SENTENCES))
    assert segments is None
    for text, row in zip(SENTENCES, rows, strict=True):
        scores = [
            sum(map(original.get_score, ids))
            for ids in (original.encode(text), row[1:-1].tolist())
        ]
        assert abs(scores[0] - scores[1]) < 1e-3, text
    (pair,), _ = packer.tokenize_rows(["the film"], ["water"])
    first, second = original.encode(["the film", "water"])
    assert pair.tolist() == [1, *first, 2, *second, 2]
    # As in real vocabularies, the mask comes after the pieces.
    assert (packer.mask, packer.mask_id) == ("[MASK]", 320)


def test_a_keras_file_takes_texts(loaded, tmp_path):
    comparison.check_keras_file(*loaded, tmp_path / "model.keras")


def test_the_savedmodel_takes_texts(loaded, tmp_path):
    comparison.check_export(*loaded, tmp_path)


def test_preset_round_trip(loaded, tmp_path):
    encoder, tokenizer = loaded
    encoder.backbone.save_to_preset(str(tmp_path))
    # As in KerasHub's own presets.
    keras_hub.models.DebertaV3Tokenizer(tokenizer.proto).save_to_preset(
        str(tmp_path)
    )
    again, tokens = load_encoder(tmp_path)
    assert again.fingerprint == encoder.fingerprint
    assert tokens(["the film"]) == tokenizer(["the film"])


@pytest.mark.parametrize(
    "method", [methods.PrefixTuning(3), methods.PromptTuning(3)]
)
def test_padding_behind_the_text_changes_nothing(loaded, method):
    model = adapt(loaded[0], method)
    features, _ = huggingface_folders.expected("deberta")
    padded = {k: np.pad(v, [(0, 0), (0, 4)]) for k, v in features.items()}
    tokens = features["padding_mask"] == 1
    wide = np.asarray(model(padded)["sequence_output"])[:, :12]
    narrow = np.asarray(model(features)["sequence_output"])
    np.testing.assert_allclose(wide[tokens], narrow[tokens], atol=1e-5)


def test_peft_gets_the_classifiers_pooler(loaded, tmp_path):
    source = folders.FIXTURES / "peft" / "deberta_lora_pooler"
    encoder = folders.encoder("peft/deberta_lora_pooler")
    model = saving.load_adapter(source, encoder)
    saving.save_adapter(model, tmp_path / "peft", format="peft")
    name = "adapter_model.safetensors"
    there, here = load_file(source / name), load_file(tmp_path / "peft" / name)
    assert sorted(here) == sorted(there)
    for key, value in there.items():
        np.testing.assert_array_equal(here[key], value)
    config = json.loads((tmp_path / "peft/adapter_config.json").read_text())
    assert "pooler" in config["modules_to_save"]


def test_the_library_adapters_is_refused(loaded, tmp_path):
    model = adapt(loaded[0], methods.LoRA(rank=2))
    with pytest.raises(saving.AdapterError, match="class DebertaV2. Use PEFT"):
        saving.save_adapter(model, tmp_path / "hub", format="adapterhub")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # As in v2's own checkpoints.
        ({"conv_kernel_size": 3}, "conv_kernel_size=0. Received: .*=3"),
        ({"norm_rel_ebd": "none"}, "DeBERTa-v3.*norm_rel_ebd='layer_norm'"),
        ({"share_att_key": False}, "share_att_key=True"),
        ({"pos_att_type": ["c2p"]}, "pos_att_type='p2c|c2p'"),
        ({"pos_att_type": 7}, "pos_att_type='p2c|c2p'"),
        ({"type_vocab_size": 2}, "type_vocab_size=0"),
        ({"max_relative_positions": 64}, "max_relative_positions=512"),
        ({"position_buckets": 8}, r"\(16, 24\).*Received: shape \(32, 24\)"),
        ({"position_buckets": -1}, "must be a positive integer"),
    ],
)
def test_config_that_does_not_fit(tmp_path, changes, message):
    copy = shutil.copytree(FOLDER, tmp_path / "deberta")
    comparison.change_config(copy, **changes)
    with pytest.raises(UserError, match=message):
        load_encoder(copy)
