"""The words that tokens form."""

import types

import numpy as np

from tf_adapters.data.tokens import vocabulary
from tf_adapters.explain import words

_TOKENS = ["<s>", "fine", "Ġfi", "lm", "Ċ", "bad", "ĊĊ"]


def test_number_signs_stay_unless_they_mark_word_pieces(monkeypatch):
    packer = types.SimpleNamespace(tokenizer=None, special_ids=[0])
    for space, expected in (("Ġ", "fi##"), ("##", "film")):
        tokens = ["<s>", f"{space}lm", f"{space}a", "fi", "##"]
        monkeypatch.setattr(vocabulary, "tokens_of", lambda _, t=tokens: t)
        continuing = 4 if space == "Ġ" else 1
        ids = np.array([0, 3, continuing, 0])
        assert words._words(ids, packer)[0][1] == expected


def test_bytes_of_a_character_are_decoded_together(monkeypatch):
    # "é" is the bytes C3 A9, which byte-level BPE writes as "Ã" and "©".
    tokens = ["<s>", "cafÃ", "©", "Ġa"]
    monkeypatch.setattr(vocabulary, "tokens_of", lambda _: tokens)
    packer = types.SimpleNamespace(tokenizer=None, special_ids=[0])
    found, *_ = words._words(np.array([0, 1, 2, 3, 0]), packer)
    assert found == ("<s>", "café", "a", "<s>")


def test_a_line_break_ends_a_word(monkeypatch):
    monkeypatch.setattr(vocabulary, "tokens_of", lambda _: _TOKENS)
    packer = types.SimpleNamespace(tokenizer=None, special_ids=[0])
    ids = np.array([0, 1, 2, 3, 4, 5, 3, 6, 4, 5, 0])
    found, indices, is_special = words._words(ids, packer)
    assert found == ("<s>", "fine", "film", "badlm", "bad", "<s>")
    assert indices.tolist() == [0, 1, 2, 2, 2, 3, 3, 3, 3, 4, 5]
    assert is_special.tolist() == [True, *[False] * 4, True]
