"""Tests the reader of WordNet's files."""

import pytest

from tests.papers.analysis.attack import made_up_wordnet
from tf_adapters.common.errors import UserError
from tf_adapters.papers.analysis.attack.wordnet import WordNet


@pytest.fixture(scope="module")
def wordnet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wordnet")
    return WordNet(made_up_wordnet.write_wordnet(folder))


@pytest.mark.parametrize(
    ("word", "letter", "expected"),
    [
        ("film", "n", [["film", "moving_picture"], ["layer"]]),
        ("Films", "n", [["film", "moving_picture"], ["layer"]]),
        ("boxes", "n", [["layer"]]),
        # Itself a lemma, though an ending could be cut.
        ("ties", "n", [["layer"]]),
        ("a", "n", [list("abcdefghijk")]),
        ("loved", "v", [["love", "enjoy"]]),
        ("was", "v", [["be"]]),
        ("galore", "a", [["galore", "abounding"]]),
        ("larger", "a", [["galore", "abounding"]]),
        ("film", "v", []),
        ("unheard", "n", []),
    ],
)
def test_synsets(wordnet, word, letter, expected):
    assert wordnet.synsets(word, letter) == expected


def test_endings_are_replaced_again_where_nothing_is_found(wordnet):
    assert wordnet.base_forms("filmss", "n") == ["film"]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"`index.noun`.*wordnet-base"):
        WordNet(tmp_path)
