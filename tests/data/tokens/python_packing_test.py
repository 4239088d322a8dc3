"""Tests that packers in Python and in the graph give equal ids."""

import itertools

import numpy as np
import pytest

from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens.packing import TextPacker
from tf_adapters.data.tokens.python_packing import PythonPacker
from tf_adapters.encoders import minilm
from tf_adapters.encoders.huggingface_tokenizer import HuggingFaceTokenizer
from tf_adapters.encoders.huggingface_tokenizer import (
    load_huggingface_tokenizer,
)

TEXTS = [
    "",
    " ",
    "a fine film",
    "[SEP] is text [CLS][MASK]",
    "Straße, ½ naïve CAFÉ™ …",
    "日本語 and 中文字",
    "tab\tnewline\nnul\0end",
    "x" * 90,
    "one two three four five six seven eight nine ten eleven twelve",
]


@pytest.fixture(name="packers", scope="module")
def _packers():
    folder = minilm.minilm_folder()
    in_graph = load_huggingface_tokenizer(folder)
    in_python = HuggingFaceTokenizer(folder)

    def make(max_length):
        return (
            TextPacker(in_graph, max_length),
            PythonPacker(in_python, max_length),
        )

    return make


def _assert_equal(expected, found):
    assert set(expected) == set(found)
    for name, value in found.items():
        np.testing.assert_array_equal(value, np.asarray(expected[name]))
        assert value.dtype == "int32"


@pytest.mark.parametrize("max_length", [8, 11, 64])
def test_single_texts_and_pairs(packers, max_length):
    in_graph, in_python = packers(max_length)
    _assert_equal(in_graph(TEXTS), in_python(TEXTS))
    pairs = list(zip(*itertools.product(TEXTS, TEXTS), strict=True))
    first, second = map(list, pairs)
    _assert_equal(in_graph(first, second), in_python(first, second))
    for expected, found in zip(
        in_graph.tokenize_rows(first, second),
        in_python.tokenize_rows(first, second),
        strict=True,
    ):
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_array_equal(one, other)


def test_masks_in_texts_are_mask_tokens(packers):
    in_graph, in_python = (p.reading_masks() for p in packers(32))
    texts = [
        *TEXTS,
        "a \u00a0\u2003[MASK] film\t[MASK]",
        "[MASK][MASK] x",
        "[mask]",
    ]
    for found, expected in zip(
        in_python.token_arrays(texts), in_graph.token_arrays(texts), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    first = in_python.token_arrays(["[MASK][MASK] x"])[0]
    assert first[:2].tolist() == [in_python.mask_id] * 2
    _assert_equal(in_graph(texts, texts), in_python(texts, texts))


def test_a_length_of_its_own(packers):
    in_graph, in_python = packers(32)
    for length in (6, 40):
        _assert_equal(
            in_graph(TEXTS, sequence_length=length),
            in_python(TEXTS, sequence_length=length),
        )


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("a text",), "list of strings"),
        ((["a", None],), "list of strings"),
        ((["a"], ["b", "c"]), "1 in `texts_a`, 2 in `texts_b`"),
    ],
)
def test_other_things_than_texts(packers, texts, message):
    _, in_python = packers(16)
    with pytest.raises(UserError, match=message):
        in_python(*texts)
