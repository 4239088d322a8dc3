"""Compares our MPNet backbone and tokenizer with PyTorch's.

The real encoder is compared if the variable `MPNET_FOLDER` names the folder of
all-mpnet-base-v2.
"""

import os
import shutil

import keras_hub
import numpy as np
import pytest
import transformers

from tests.encoders import comparison
from tests.fixtures import huggingface_folders
from tests.fixtures.sentences import SENTENCES
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens.packing import TextPacker
from tf_adapters.encoders.load import load_encoder
from tf_adapters.methods import PrefixTuning
from tf_adapters.methods import PromptTuning
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.saving import save_adapter

pytestmark = pytest.mark.integration

FOLDER = huggingface_folders.folder("mpnet")


@pytest.fixture(scope="module")
def loaded():
    return load_encoder(FOLDER)


def test_longest_texts_and_padding_on_the_left(loaded):
    comparison.check_longest(loaded[0], "mpnet")


@pytest.mark.skipif(
    "MPNET_FOLDER" not in os.environ, reason="MPNET_FOLDER is not set"
)
def test_real_mpnet_equals_its_own_model():
    features, expected = huggingface_folders.expected("mpnet_base")
    encoder, tokenizer = load_encoder(os.environ["MPNET_FOLDER"])
    packed = TextPacker(tokenizer, 512)(SENTENCES[:5])
    np.testing.assert_array_equal(packed["token_ids"], features["token_ids"])
    outputs = AdaptedEncoder(encoder)(features, return_hidden_states=True)
    tokens = features["padding_mask"] == 1
    for actual, wanted in zip(
        outputs["hidden_states"], expected["hidden_states"], strict=True
    ):
        actual = np.asarray(actual)[..., ::32]
        assert np.abs(actual - wanted)[tokens].max() < 1e-5
    pooled = np.asarray(outputs["pooled_output"])[..., ::32]
    assert np.abs(pooled - expected["pooled_output"]).max() < 1e-5


def test_texts_are_packed_as_transformers_packs_them(loaded):
    original = transformers.AutoTokenizer.from_pretrained(str(FOLDER))
    texts = [text for text in SENTENCES if text][:60]
    packer = TextPacker(loaded[1], 512)
    for seconds in (None, texts[::-1]):
        rows, segments = packer.tokenize_rows(texts, seconds)
        expected = original(texts, seconds, split_special_tokens=True)
        assert [row.tolist() for row in rows] == expected["input_ids"]
        assert segments is None
    assert packer.mask == "<mask>"


def test_a_folder_with_tokenizer_json_only(loaded, tmp_path):
    copy = shutil.copytree(FOLDER, tmp_path / "mpnet")
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(FOLDER))
    tokenizer.save_pretrained(copy)
    (copy / "vocab.txt").unlink(missing_ok=True)
    _, fast = load_encoder(copy)
    texts = ["the film", "", "un café"]
    expected = TextPacker(loaded[1], 20).tokenize_rows(texts, texts)
    in_python = TextPacker(fast, 20)
    in_graph = TextPacker(fast.in_graph(), 20)
    for packer in (in_python, in_graph):
        rows, _ = packer.tokenize_rows(texts, texts)
        for row, wanted in zip(rows, expected[0], strict=True):
            np.testing.assert_array_equal(row, wanted)


def test_a_keras_file_takes_texts(loaded, tmp_path):
    comparison.check_keras_file(*loaded, tmp_path / "model.keras")


def test_the_savedmodel_takes_texts(loaded, tmp_path):
    comparison.check_export(*loaded, tmp_path)


def test_preset_round_trip(loaded, tmp_path):
    encoder, tokenizer = loaded
    encoder.backbone.save_to_preset(str(tmp_path))
    tokenizer.save_to_preset(str(tmp_path))
    again, tokens = load_encoder(tmp_path)
    assert again.fingerprint == encoder.fingerprint
    assert tokens(["the film"]) == tokenizer(["the film"])
    keras_hub.models.Backbone.from_preset(str(tmp_path))


def test_another_number_of_buckets_is_refused(tmp_path):
    copy = shutil.copytree(FOLDER, tmp_path / "mpnet")
    comparison.change_config(copy, relative_attention_num_buckets=64)
    with pytest.raises(UserError, match="buckets=32.*Received: 64"):
        load_encoder(copy)


@pytest.mark.parametrize(
    ("form", "method", "message"),
    [
        ("adapterhub", PrefixTuning(3), "class MPNet. Use PEFT"),
        ("peft", PrefixTuning(3, form="peft"), "does not run on MPNet"),
    ],
)
def test_what_other_libraries_lack(loaded, tmp_path, form, method, message):
    model = adapt(loaded[0], method)
    with pytest.raises(AdapterError, match=message):
        save_adapter(model, tmp_path / "there", format=form)


@pytest.mark.parametrize("method", [PrefixTuning(3), PromptTuning(3)])
def test_what_stands_before_the_text_leaves_it_its_distances(loaded, method):
    """Padding on the right has no effect, so each key has its own bias."""
    model = adapt(loaded[0], method)
    features, _ = huggingface_folders.expected("mpnet")
    padded = {
        "token_ids": np.pad(
            features["token_ids"], [(0, 0), (0, 4)], constant_values=1
        ),
        "padding_mask": np.pad(features["padding_mask"], [(0, 0), (0, 4)]),
    }
    tokens = features["padding_mask"] == 1
    wide = np.asarray(model(padded)["sequence_output"])[:, :12]
    narrow = np.asarray(model(features)["sequence_output"])
    np.testing.assert_allclose(wide[tokens], narrow[tokens], atol=1e-5)
