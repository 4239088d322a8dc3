"""Tests that packed ids equal transformers', also in a SavedModel."""

from pathlib import Path

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf
import transformers

from tests.fixtures import huggingface_folders
from tests.fixtures.sentences import SENTENCES
from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens import packing
from tf_adapters.data.tokens import special_tokens
from tf_adapters.data.tokens.packing import TextPacker
from tf_adapters.encoders import huggingface_tokenizer
from tf_adapters.encoders import load
from tf_adapters.encoders import minilm

pytestmark = pytest.mark.integration

FIRST = list(SENTENCES[:60])
SECOND = FIRST[::-1]


@pytest.fixture(scope="module")
def word_pieces():
    return huggingface_tokenizer.load_huggingface_tokenizer(
        minilm.minilm_folder()
    )


@pytest.fixture(scope="module")
def packer(word_pieces):
    return TextPacker(word_pieces, 24)


@pytest.fixture(scope="module")
def original():
    path = str(minilm.minilm_folder() / "vocab.txt")
    return transformers.BertTokenizer(path, do_lower_case=True)


def test_one_text_as_transformers_packs_it(packer, original):
    packed = packer(FIRST)
    expected = original(
        FIRST,
        split_special_tokens=True,
        truncation=True,
        max_length=24,
        padding="longest",
        return_tensors="np",
    )
    np.testing.assert_array_equal(packed["token_ids"], expected["input_ids"])
    np.testing.assert_array_equal(
        packed["padding_mask"], expected["attention_mask"]
    )
    assert not np.any(packed["segment_ids"])
    assert {value.dtype for value in packed.values()} == {tf.int32}


def test_two_texts_as_transformers_packs_them(word_pieces, original):
    packed = TextPacker(word_pieces, 512)(FIRST, SECOND, 512)
    expected = original(
        FIRST,
        SECOND,
        split_special_tokens=True,
        padding="max_length",
        max_length=512,
        return_tensors="np",
    )
    np.testing.assert_array_equal(packed["token_ids"], expected["input_ids"])
    np.testing.assert_array_equal(
        packed["segment_ids"], expected["token_type_ids"]
    )


@pytest.mark.parametrize(
    ("max_length", "expected"),
    [
        # Five and two tokens: the longer text is cut until both are equal.
        (12, "CLS a b c d e SEP f g SEP"),
        (9, "CLS a b c d SEP f g SEP"),
        (7, "CLS a b SEP f g SEP"),
        (6, "CLS a b SEP f SEP"),
        (5, "CLS a SEP f SEP"),
    ],
)
def test_truncation_takes_turns(monkeypatch, packer, max_length, expected):
    tokenizer = packer.tokenizer
    monkeypatch.setattr(packer, "max_length", max_length)
    rows, segments = packer.tokenize_rows(["a b c d e"], ["f g"])
    names = {"CLS": "[CLS]", "SEP": "[SEP]"}
    tokens = [names.get(token, token) for token in expected.split()]
    assert [tokenizer.id_to_token(i) for i in rows[0]] == tokens
    second = len(tokens) - 1 - tokens.index("[SEP]")
    assert list(segments[0]) == [0] * (len(tokens) - second) + [1] * second


def test_rows_are_the_packed_ids(packer):
    for texts in ((FIRST,), (FIRST, SECOND)):
        packed = {name: x.numpy() for name, x in packer(*texts).items()}
        rows, segments = packer.tokenize_rows(*texts)
        for i, (row, segment) in enumerate(zip(rows, segments, strict=True)):
            assert row.dtype == segment.dtype == np.int32
            np.testing.assert_array_equal(
                row, packed["token_ids"][i, : len(row)]
            )
            np.testing.assert_array_equal(
                segment, packed["segment_ids"][i, : len(row)]
            )
            assert packed["padding_mask"][i].sum() == len(row)


def test_many_rows_are_tokenized_in_order(packer, monkeypatch):
    texts = [f"{i} dogs" for i in range(25)]
    expected, _ = packer.tokenize_rows(texts, texts[::-1])
    monkeypatch.setattr(packing, "_ROWS_AT_ONCE", 10)
    rows, segments = packer.tokenize_rows(texts, texts[::-1])
    assert len(rows) == len(segments) == 25
    for row, expected_row in zip(rows, expected, strict=True):
        np.testing.assert_array_equal(row, expected_row)
    assert packer.tokenize_rows([]) == ([], [])


def test_sequence_length_pads_and_cuts(packer):
    assert packer(["a film"], None, 12)["token_ids"].shape == (1, 12)
    assert packer(["word " * 50], None, 32)["padding_mask"].numpy().sum() == 24
    packed = packer(["one two three four five six seven"], None, 6)
    assert packed["token_ids"].shape == (1, 6)
    assert packed["token_ids"][0, -1] == packer.special_tokens.end


@pytest.mark.parametrize(
    ("texts", "length", "least"),
    [
        ((["a"],), 1, "a text .* of at least 3"),
        ((["a"],), 0, "a text .* of at least 3"),
        ((["a"],), -1, "a text .* of at least 3"),
        ((["a"],), 8.0, "a text .* of at least 3"),
        ((["a"],), "x" * 300, "a text .* of at least 3.*'x{99}$"),
        ((["a"], ["b"]), 4, "two texts .* of at least 5"),
    ],
)
def test_a_length_without_room_is_refused(packer, texts, length, least):
    with pytest.raises(UserError, match=f"`sequence_length`: {least}"):
        packer(*texts, sequence_length=length)


@pytest.mark.parametrize("length", [4.5, None, "a"])
def test_a_longest_length_without_room_is_refused(packer, length):
    with pytest.raises(
        UserError, match="`max_length`: two texts .* of at least 5"
    ):
        TextPacker(packer.tokenizer, length)


def test_the_shortest_lengths_hold_a_token_of_each_text(packer):
    one = packer(["film"], sequence_length=3)["token_ids"][0]
    two = packer(["film"], ["film"], sequence_length=5)["token_ids"][0]
    assert one[1] == two[1] == two[3] not in packer.special_ids


def test_xlm_r_doubles_the_separator():
    folder = huggingface_folders.folder("xlm_roberta")
    tokenizer = huggingface_tokenizer.load_huggingface_tokenizer(folder)
    packer = TextPacker(tokenizer, 32)
    packed = packer(["a film", ""], ["water", "a"])
    assert set(packed) == {"token_ids", "padding_mask"}
    assert packer.tokenize_rows(["a"], ["b"])[1] is None
    first, second = (tokenizer([text])[0] for text in ("a film", "water"))
    expected = [0, *first, 2, 2, *second, 2]
    length = len(expected)
    assert packed["token_ids"][0, :length].numpy().tolist() == expected
    assert np.all(packed["token_ids"][:, length:] == 1)
    assert packed["token_ids"][1, :3].numpy().tolist() == [0, 2, 2]


def test_sentence_pieces_are_kept_when_the_seed_is_set():
    folder = huggingface_folders.folder("xlm_roberta")
    tokenizer = huggingface_tokenizer.load_huggingface_tokenizer(folder)
    packer = TextPacker(tokenizer, 32)
    expected = packer(["a film"])["token_ids"].numpy().tolist()
    keras.utils.set_random_seed(1)
    assert packer(["a film"])["token_ids"].numpy().tolist() == expected


def test_distilbert_has_no_segments():
    folder = huggingface_folders.folder("distilbert_bare")
    encoder, tokenizer = load.load_encoder(folder)
    special = special_tokens.special_tokens_of(
        tokenizer, encoder.takes_segments
    )
    assert (special.separators, special.second_segment) == ((3,), None)


def test_bert_with_the_vocabulary_of_xlm_r_has_zero_segments():
    """As in multilingual-e5, only the backbone has segments."""
    folder = huggingface_folders.folder("xlm_roberta")
    tokenizer = huggingface_tokenizer.load_huggingface_tokenizer(folder)
    assert special_tokens.special_tokens_of(tokenizer).second_segment is None
    special = special_tokens.special_tokens_of(tokenizer, takes_segments=True)
    assert special.second_segment == 0


@pytest.mark.parametrize(
    "name",
    [
        "bert",
        pytest.param("roberta_bare", marks=pytest.mark.slow),
        pytest.param("xlm_roberta", marks=pytest.mark.slow),
    ],
)
def test_saved_model_gives_the_same_ids(tmp_path, name):
    folder = huggingface_folders.folder(name)
    tokenizer = huggingface_tokenizer.load_huggingface_tokenizer(folder)
    packer = TextPacker(tokenizer, 24)
    texts = FIRST[:40] + ["nul\0byte"]
    expected = packer(texts, texts[::-1])

    module = tf.Module()
    module.assets = [
        value
        for value in vars(tokenizer).values()
        if isinstance(value, tf.__internal__.tracking.Trackable)
    ]
    spec = tf.TensorSpec([None], tf.string)
    module.pack = tf.function(
        lambda a, b: packer(a, b), input_signature=[spec, spec]
    )
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    received = loaded.pack(tf.constant(texts), tf.constant(texts[::-1]))
    assert set(received) == set(expected)
    for key, value in expected.items():
        np.testing.assert_array_equal(received[key], value)


def test_text_after_a_nul_is_kept(packer):
    rows, _ = packer.tokenize_rows(["a\0 film", "a film"])
    np.testing.assert_array_equal(*rows)


def test_too_short_a_length(word_pieces):
    with pytest.raises(ValueError, match="Received: max_length=4"):
        TextPacker(word_pieces, 4)


@pytest.mark.parametrize("length", [5.5, "32", None, True])
def test_a_length_that_is_no_integer(word_pieces, length):
    with pytest.raises(UserError, match="it must be an integer of at least 5"):
        TextPacker(word_pieces, length)


def test_tokenizer_of_another_kind():
    tokenizer = keras_hub.tokenizers.ByteTokenizer()
    with pytest.raises(ValueError, match="Received: ByteTokenizer"):
        TextPacker(tokenizer, 16)


def test_pairs_and_single_texts_in_one_batch(packer):
    is_pair = np.arange(len(FIRST)) % 3 == 0
    mixed = packer(FIRST, SECOND, 24, is_pair=tf.constant(is_pair))
    pairs, alone = packer(FIRST, SECOND, 24), packer(FIRST, None, 24)
    for name, value in mixed.items():
        np.testing.assert_array_equal(
            value, np.where(is_pair[:, None], pairs[name], alone[name])
        )
    assert mixed["padding_mask"].numpy().sum(1).max() == 24


@pytest.mark.parametrize(
    "texts",
    ["one text", [("first", "second")], [1, 2], ["a text", None]],
    ids=["one string", "pairs", "numbers", "a missing text"],
)
def test_what_is_no_list_of_strings(packer, texts):
    with pytest.raises(UserError, match="`texts_a` must be a list of strings"):
        packer(texts)


def test_the_text_that_is_none_is_named(packer):
    with pytest.raises(UserError, match=r"texts_a\[200\] is None"):
        packer(["a text"] * 200 + [None])


def test_fewer_second_texts_than_first_ones(packer):
    with pytest.raises(UserError, match="2 in `texts_a`, 1 in `texts_b`"):
        packer(["a", "b"], ["c"])


@pytest.fixture(scope="module")
def pack_in_graph(packer):
    texts = tf.TensorSpec([None], tf.string)
    flags = tf.TensorSpec([None], tf.bool)
    return tf.function(
        lambda a, b, is_pair: packer(a, b, is_pair=is_pair),
        input_signature=[texts, texts, flags],
    )


@pytest.mark.parametrize("counts", [(3, 2, 3), (2, 3, 2), (2, 2, 1), (1, 1, 2)])
def test_a_graph_compares_the_numbers_of_texts(pack_in_graph, counts):
    first, second, flags = counts
    with pytest.raises(tf.errors.InvalidArgumentError, match="number of rows"):
        pack_in_graph(["a"] * first, ["b"] * second, [True] * flags)


def test_bytes_that_a_vocabulary_lacks_are_the_unknown_token():
    folder = Path(huggingface_folders.__file__).parent / "adapters/encoders"
    tokenizer = load.load_encoder(str(folder / "roberta"))[1]
    unknown = tokenizer.token_to_id("<unk>")
    ids = TextPacker(tokenizer, 16)(["é"])["token_ids"]
    np.testing.assert_array_equal(ids[0, 1:-1], [unknown] * 2)


def test_no_texts_are_packed_to_no_rows_of_one_token(packer):
    # An encoder reads a first token.
    assert packer([])["token_ids"].shape == (0, 1)


def test_an_array_of_texts(packer):
    texts = np.array(["a fine film", "who?"], dtype=object)
    np.testing.assert_array_equal(
        packer(texts)["token_ids"], packer(list(texts))["token_ids"]
    )
