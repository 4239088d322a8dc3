"""Texts of tokens, compared with transformers' own decoding."""

import pytest
import transformers

from tests.fixtures import huggingface_folders
from tf_adapters.data.tokens import vocabulary
from tf_adapters.encoders import huggingface_tokenizer


def _load(name):
    return huggingface_tokenizer.load_huggingface_tokenizer(
        huggingface_folders.folder(name)
    )


@pytest.mark.parametrize(
    ("name", "original"),
    [
        ("bert", transformers.BertTokenizer),
        ("roberta_bare", transformers.RobertaTokenizer),
    ],
)
def test_tokens_are_decoded_as_by_transformers(name, original):
    folder = str(huggingface_folders.folder(name))
    original = original.from_pretrained(folder)
    tokenizer = _load(name)
    tokens = vocabulary.tokens_of(tokenizer)
    ids = list(range(len(tokens)))
    assert tokens == original.convert_ids_to_tokens(ids)
    texts = vocabulary.token_texts(tokenizer, len(tokens) + 2)
    expected = [
        original.decode([i], clean_up_tokenization_spaces=False) for i in ids
    ]
    assert texts == [*expected, "", ""]


def test_sentence_pieces_have_their_spaces():
    tokenizer = _load("xlm_roberta")
    texts = vocabulary.token_texts(tokenizer, 342)
    tokens = [tokenizer.id_to_token(i) for i in range(342)]
    assert len(texts) == 342 and texts[-1] == "<mask>"
    assert texts == [token.replace("\u2581", " ") for token in tokens]
    assert sum(text.startswith(" ") for text in texts) > 20


def test_tokens_are_in_the_order_of_their_ids_whatever_the_files():
    tokenizer = type("Tokenizer", (), {"vocabulary": {"c": 3, "a": 0, "b": 1}})
    assert vocabulary.tokens_of(tokenizer) == ["a", "b", "", "c"]


@pytest.mark.parametrize("name", ["bert", "roberta_bare", "xlm_roberta"])
def test_which_tokens_go_on_with_a_word(name):
    tokenizer = _load(name)
    tokens = vocabulary.tokens_of(tokenizer)
    continues = vocabulary.continues_word(tokenizer)
    assert len(tokens) == len(continues)
    begins = ("\u0120", "\u2581")
    for token, goes_on in zip(tokens, continues, strict=True):
        if name == "bert":
            assert goes_on == token.startswith("##")
        else:
            assert goes_on == (not token.startswith(begins))
