"""ALBERT, whose blocks share weights, and its tokenizer."""

import shutil
import unicodedata

import keras_hub
import numpy as np
import pytest
import sentencepiece
import transformers

from tests import tiny
from tests.encoders import comparison
from tests.fixtures import huggingface_folders
from tests.fixtures.sentences import SENTENCES
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens import library_tokenizers
from tf_adapters.data.tokens.packing import TextPacker
from tf_adapters.encoders.load import load_encoder
from tf_adapters.models import saving
from tf_adapters.models.adapter_model import adapt

pytestmark = pytest.mark.integration

FOLDER = huggingface_folders.folder("albert")


@pytest.fixture(scope="module")
def loaded():
    return load_encoder(FOLDER)


def test_longest_texts_and_padding_on_the_left(loaded):
    comparison.check_longest(loaded[0], "albert")


def test_groups_share_weights_and_not_slots(loaded):
    encoder, _ = loaded
    assert encoder.ffn_output_dropout == 0.0 and encoder.hidden_dropout == 0.1
    blocks = adapt(encoder, methods.Pfeiffer(units=4)).encoder.blocks
    assert [b.block is blocks[0].block for b in blocks] == [1, 1, 0, 0]
    assert len({id(b.slots["after_ffn"]) for b in blocks}) == 4


def test_texts_are_packed_as_transformers_packs_them(loaded):
    # Both read SentencePiece files, and must load the same definition of them.
    assert library_tokenizers.library_tokenizer(loaded[1]) is not None
    original = transformers.AlbertTokenizer.from_pretrained(str(FOLDER))
    texts = ["Ünïcode café", "``quoted'' TEXT", "½ ™", "", " the  film "]
    packer = TextPacker(loaded[1], 512)
    rows, segments = packer.tokenize_rows(texts, texts[::-1])
    expected = original(
        texts,
        texts[::-1],
        split_special_tokens=True,
        return_token_type_ids=True,
    )
    assert [row.tolist() for row in rows] == expected["input_ids"]
    assert [row.tolist() for row in segments] == expected["token_type_ids"]
    assert packer.mask == "[MASK]"


def test_pieces_are_as_likely_as_those_of_sentencepiece(loaded):
    """Ties are broken differently, so scores are compared."""
    original = sentencepiece.SentencePieceProcessor(
        model_file=str(FOLDER / "spiece.model")
    )
    rows, _ = TextPacker(loaded[1], 10_000).tokenize_rows(list(SENTENCES))
    for text, row in zip(SENTENCES, rows, strict=True):
        text = text.replace("``", '"').replace("''", '"')
        letters = unicodedata.normalize("NFKD", text)
        plain = [c for c in letters if unicodedata.category(c)[0] != "M"]
        expected = original.encode("".join(c.lower() for c in plain))
        scores = [
            sum(map(original.get_score, ids))
            for ids in (expected, row[1:-1].tolist())
        ]
        assert abs(scores[0] - scores[1]) < 1e-3, text


def test_a_keras_file_takes_texts(loaded, tmp_path):
    comparison.check_keras_file(*loaded, tmp_path / "model.keras")


def test_the_savedmodel_takes_texts(loaded, tmp_path):
    comparison.check_export(*loaded, tmp_path)


def test_preset_round_trip(loaded, tmp_path):
    encoder, tokenizer = loaded
    encoder.backbone.save_to_preset(str(tmp_path))
    # As in KerasHub's own presets.
    keras_hub.models.AlbertTokenizer(tokenizer.proto).save_to_preset(
        str(tmp_path)
    )
    again, tokens = load_encoder(tmp_path)
    assert tokens(["The Film"]) == tokenizer(["the film"])
    weights = again.backbone.weights
    for one, other in zip(weights, encoder.backbone.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_products_of_each_depth_are_exported_unmerged(loaded, tmp_path):
    model = adapt(tiny.encoder("albert"), methods.LoRA(rank=2))
    tiny.randomize(model.trained_variables().values())
    features = tiny.batch(model.encoder_info)
    before = model(features)["sequence_output"]
    with model.reparameterization.folded_meanwhile():
        np.testing.assert_array_equal(
            model(features)["sequence_output"], before
        )
    with pytest.raises(UserError, match="share their kernels"):
        model.fold()


def test_top_layers_are_refused_where_lower_ones_share_them(loaded):
    with pytest.raises(UserError, match="share them.*k=4. Received: k=1"):
        adapt(loaded[0], methods.TopLayers(k=1))
    model = adapt(loaded[0], methods.TopLayers(k=2))
    trained = [v.path for v in model.trained_variables().values()]
    assert trained
    assert all(p.startswith(("group_1", "pooled_dense")) for p in trained)


def test_other_libraries_have_one_product_for_a_group(loaded, tmp_path):
    model = adapt(loaded[0], methods.LoRA(rank=2))
    with pytest.raises(saving.AdapterError, match="AlbertBackbone"):
        saving.save_adapter(model, tmp_path / "peft", format="peft")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inner_group_num": 2}, "inner_group_num=1.*Received: 2"),
        ({"num_hidden_layers": 5}, "multiple of `num_hidden_groups`=2"),
        ({"num_hidden_groups": 4}, "tensors are missing"),
        ({"num_hidden_groups": 0}, "must be a positive integer"),
    ],
)
def test_config_that_does_not_fit(tmp_path, changes, message):
    copy = shutil.copytree(FOLDER, tmp_path / "albert")
    comparison.change_config(copy, **changes)
    with pytest.raises(UserError, match=message):
        load_encoder(copy)
