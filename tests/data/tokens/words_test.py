"""Tests that single words have the same tokens as within a text."""

import numpy as np
import pytest

from tests.fixtures import huggingface_folders
import tf_adapters
from tf_adapters.data.tokens import words as words_lib

pytestmark = pytest.mark.integration

TEXT = "the film is not good , very dull it café unbelievable 電影 x"


@pytest.mark.parametrize("name", ["bert", "roberta_bare", "xlm_roberta"])
def test_words_are_tokenized_as_within_a_text(name):
    tokenizer = tf_adapters.load_encoder(str(huggingface_folders.folder(name)))[
        1
    ]
    packer = tf_adapters.TextPacker(tokenizer, 128)
    words = TEXT.split() + ["the", "good"]
    tokens = words_lib.tokenize_words(packer, words)
    whole = packer.tokenize([" " + " ".join(words)]).values.numpy()
    np.testing.assert_array_equal(np.concatenate(tokens), whole)
    assert len(tokens) == len(words) and min(map(len, tokens)) > 0


def test_a_word_without_tokens_is_unknown():
    tokenizer = tf_adapters.load_encoder(
        str(huggingface_folders.folder("bert"))
    )[1]
    packer = tf_adapters.TextPacker(tokenizer, 16)
    tokens = words_lib.tokenize_words(packer, ["\u200b", "film", "\x00", ""])
    unknown = tokenizer.token_to_id("[UNK]")
    assert [row.tolist() for row in tokens[:1] + tokens[2:]] == [[unknown]] * 3
    assert tokens[1].tolist() != [unknown]


def test_windows_hold_all_words_in_order():
    generator = np.random.default_rng(0)
    for room in (1, 3, 10):
        for count in (0, 1, 2, 30):
            lengths = generator.integers(1, 6, count).tolist()
            found = list(words_lib.windows(lengths, room))
            places = [i for part in found for i in range(count)[part]]
            assert places == list(range(count))
            for part in found:
                assert sum(lengths[part]) <= room or len(lengths[part]) == 1
            # The next word would not have fit into any window.
            for part in found[:-1]:
                assert sum(lengths[part]) + lengths[part.stop] > room


def test_modernberts_unknown_token_has_a_name_of_its_own():
    folder = str(huggingface_folders.folder("modernbert"))
    tokenizer = tf_adapters.load_encoder(folder)[1]
    in_graph = tokenizer.in_graph()
    assert words_lib.unknown_id(in_graph) == words_lib.unknown_id(tokenizer)
    packer = tf_adapters.TextPacker(tokenizer, 16)
    assert packer([])["token_ids"].shape == (0, 1)
