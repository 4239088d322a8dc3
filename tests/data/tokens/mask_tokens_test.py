"""Tests that mask tokens in texts become ids, as in other libraries."""

import functools
import shutil

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import tokenizers
import transformers

from tests.fixtures import huggingface_folders
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.tokens import mask_tokens
from tf_adapters.data.tokens.packing import TextPacker
from tf_adapters.encoders import huggingface_tokenizer

pytestmark = pytest.mark.integration

TEXTS = [
    "",
    "{}",
    "the {} film",
    "the{}film",
    "{}{} the film",
    "the film {} {}. Water, {}!",
    "un{}ed \u00a0 {} \u2028\u3000{}\u00a0the film",
    "no mask at all, [mask] < mask > [ MASK ]",
    "two  spaces  {}  here ",
    "中文 {} café é{}",
]


def _texts(mask):
    return [text.replace("{}", mask) for text in TEXTS]


@functools.cache
def _packer(name):
    """Returns a packer, shared because tracing a tokenizer takes seconds."""
    folder = huggingface_folders.folder(name)
    return TextPacker(
        huggingface_tokenizer.load_huggingface_tokenizer(folder), 10_000
    )


def _rows(packer, texts):
    return packer.tokenize(tf.constant(texts)).to_list()


def _byte_pairs(add_prefix_space=False):
    """Returns transformers' RoBERTa tokenizer with the published mask token."""
    folder = str(huggingface_folders.folder("roberta_bare"))
    tokenizer = transformers.RobertaTokenizer.from_pretrained(
        folder, add_prefix_space=add_prefix_space
    )
    mask = tokenizers.AddedToken("<mask>", lstrip=True, special=True)
    tokenizer.add_special_tokens({"mask_token": mask})
    return tokenizer


def _expected(tokenizer):
    return tokenizer(_texts(tokenizer.mask_token), add_special_tokens=False)[
        "input_ids"
    ]


def test_word_pieces_are_those_of_transformers():
    packer = _packer("bert").reading_masks()
    folder = str(huggingface_folders.folder("bert"))
    original = transformers.BertTokenizer.from_pretrained(folder)
    assert _rows(packer, _texts("[MASK]")) == _expected(original)


def test_byte_pairs_are_those_of_transformers():
    packer = _packer("roberta_bare").reading_masks()
    assert _rows(packer, _texts("<mask>")) == _expected(_byte_pairs())


def test_byte_pairs_with_a_space_before_each_text(tmp_path):
    source = huggingface_folders.folder("roberta_bare")
    for name in ("config.json", "vocab.json", "merges.txt"):
        shutil.copy(source / name, tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"add_prefix_space":true}')
    packer = TextPacker(
        huggingface_tokenizer.load_huggingface_tokenizer(tmp_path), 10_000
    )
    original = _byte_pairs(add_prefix_space=True)
    assert _rows(packer.reading_masks(), _texts("<mask>")) == _expected(
        original
    )
    texts = ["", " ", "x", " x", "  x", "the film"]
    expected = original(texts, add_special_tokens=False)["input_ids"]
    assert _rows(packer, texts) == expected


def test_sentence_pieces_are_those_between_masks():
    packer = _packer("xlm_roberta").reading_masks()
    folder = huggingface_folders.folder("xlm_roberta")
    original = sentencepiece.SentencePieceProcessor(
        model_file=str(folder / "sentencepiece.bpe.model")
    )
    # fairseq puts <pad> before the pieces and swaps <unk>, which is 0.
    between = [
        [
            [3 if i == 0 else i + 1 for i in row]
            for row in original.encode(parts)
        ]
        for parts in (text.split("{}") for text in TEXTS)
    ]
    mask = packer.mask_id
    expected = [
        sum(([mask, *part] for part in rest), first) for first, *rest in between
    ]
    assert _rows(packer, _texts("<mask>")) == expected


@pytest.mark.parametrize("name", ["bert", "roberta_bare", "xlm_roberta"])
def test_a_graph_packs_alike_and_other_packers_see_text(name):
    plain = _packer(name)
    packer = plain.reading_masks()
    texts = _texts(packer.mask)
    eager = packer(texts, texts[::-1])
    in_graph = tf.function(packer)(tf.constant(texts), tf.constant(texts[::-1]))
    for key, value in eager.items():
        np.testing.assert_array_equal(value, in_graph[key])
    rows, _ = packer.tokenize_rows(texts)
    numbers = [np.count_nonzero(row == packer.mask_id) for row in rows]
    assert numbers == [text.count("{}") for text in TEXTS]
    rows, _ = plain.tokenize_rows(texts)
    assert not any(packer.mask_id in row for row in rows)


def test_a_tokenizer_without_a_mask_says_so():
    packer = TextPacker(_packer("bert").tokenizer, 16)
    packer.tokenizer = type("Tokenizer", (), {"mask_token_id": None})()
    with pytest.raises(ValueError, match="has no mask token"):
        packer.reading_masks()


def test_places_of_masks_are_found_in_order():
    features = {"token_ids": tf.constant([[1, 9, 4, 9], [4, 4, 4, 9], [4] * 4])}
    assert mask_tokens.count_mask_tokens(features, 9) == 2
    found = mask_tokens.find_mask_tokens(features, 9, 2)
    assert found["masked_positions"].numpy().tolist() == [
        [1, 3],
        [3, IGNORED],
        [IGNORED, IGNORED],
    ]
    assert (
        mask_tokens.count_mask_tokens(
            {"token_ids": tf.zeros([0, 3], tf.int32)}, 9
        )
        == 0
    )
    none = mask_tokens.find_mask_tokens(
        features, 7, mask_tokens.count_mask_tokens(features, 7)
    )
    assert none["masked_positions"].shape == (3, 0)
