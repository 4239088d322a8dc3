"""Tests that windows of long texts have all tokens, with overlaps."""

import logging

import numpy as np
import pytest
import tensorflow as tf

from tests.fixtures import huggingface_folders
import tf_adapters
from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens.python_packing import PythonPacker
from tf_adapters.data.tokens.windows import Windows
from tf_adapters.data.tokens.windows import tokenize_windows
from tf_adapters.encoders import minilm
from tf_adapters.encoders.huggingface_tokenizer import HuggingFaceTokenizer

TEXTS = ["", "a", "the film is good and dull but not bad " * 2, "a b c d e f"]
LENGTH = 8


@pytest.fixture(name="packer", scope="module")
def _packer():
    folder = huggingface_folders.folder("bert")
    tokenizer = tf_adapters.load_encoder(str(folder))[1]
    return tf_adapters.TextPacker(tokenizer, LENGTH)


def _by_hand(packer, text, count, stride):
    """Returns the windows of a text, computed token by token."""
    (tokens,) = packer.token_arrays([text])
    room, special = packer.max_length - 2, packer.special_tokens
    rows = [[]]
    starts = [0]
    for place, token in enumerate(tokens):
        if place >= starts[-1] + room:
            starts.append(starts[-1] + stride)
            rows.append(list(tokens[starts[-1] : place]))
        rows[-1].append(token)
    return [[special.start, *row, special.end] for row in rows[:count]]


@pytest.mark.parametrize("stride", [1, 4, 6])
@pytest.mark.parametrize("count", [2, 100])
def test_windows_are_the_tokens_in_order(packer, count, stride):
    ids, segments = tokenize_windows(packer, TEXTS, Windows(count, stride))
    expected = [_by_hand(packer, text, count, stride) for text in TEXTS]
    assert [len(row) for row in ids][:2] == [1, 1] and len(ids[2]) > 1
    assert max(map(len, ids)) == (2 if count == 2 else len(ids[2]))
    for row, wanted, segment in zip(ids, expected, segments, strict=True):
        assert [window.tolist() for window in row] == wanted
        assert all(not s.any() for s in segment)
        assert all(window.dtype == "int32" for window in row)


def test_the_usual_stride_is_three_quarters():
    assert Windows(2).step(126) == 94
    assert Windows(2).step(1) == 1
    assert Windows(3).spans(200, 100) == [
        slice(0, 100),
        slice(75, 175),
        slice(150, 200),
    ]
    # There is no further window if the last one reaches the end.
    assert Windows(9, 50).spans(150, 100) == [slice(0, 100), slice(50, 150)]


@pytest.mark.parametrize("stride", [None, 1, 5])
@pytest.mark.parametrize("count", [1, 3, 50])
def test_a_graph_packs_the_same(packer, count, stride):
    windows = Windows(count, stride)
    ids, segments = tokenize_windows(packer, TEXTS, windows)
    pad = packer.special_tokens.pad

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def in_graph(texts):
        return packer.pack_windows(texts, windows)

    received = in_graph(tf.constant(TEXTS))
    shape = (len(TEXTS), max(map(len, ids)), LENGTH)
    expected = {
        "token_ids": np.full(shape, pad),
        "padding_mask": np.zeros(shape, int),
        "segment_ids": np.zeros(shape, int),
    }
    for row, windows_of_row in enumerate(ids):
        for number, window in enumerate(windows_of_row):
            expected["token_ids"][row, number, : len(window)] = window
            expected["padding_mask"][row, number, : len(window)] = 1
    assert received.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(received[name], value)
    eager = packer.pack_windows(TEXTS, windows)
    np.testing.assert_array_equal(eager["token_ids"], received["token_ids"])
    assert in_graph(tf.constant([], tf.string))["token_ids"].shape[:2] == (0, 1)


def test_one_window_is_what_is_cut_today(packer):
    ids, _ = tokenize_windows(packer, TEXTS, Windows(1))
    cut, _ = packer.tokenize_rows(TEXTS)
    for (window,), row in zip(ids, cut, strict=True):
        np.testing.assert_array_equal(window, row)
    one = packer.pack_windows(TEXTS, Windows(1))
    for name, value in packer(TEXTS).items():
        np.testing.assert_array_equal(one[name][:, 0], value)


def test_the_packer_in_python_makes_the_same():
    folder = minilm.minilm_folder()
    packers = [
        tf_adapters.TextPacker(tf_adapters.load_encoder("minilm")[1], LENGTH),
        PythonPacker(HuggingFaceTokenizer(folder), LENGTH),
    ]
    (one, _), (other, _) = (
        tokenize_windows(packer, TEXTS, Windows(3, 2)) for packer in packers
    )
    assert [[w.tolist() for w in row] for row in one] == [
        [w.tolist() for w in row] for row in other
    ]


def test_what_is_cut_is_said(packer, caplog):
    with caplog.at_level(logging.WARNING):
        tokenize_windows(packer, TEXTS, Windows(50))
        assert not caplog.messages
        tokenize_windows(packer, TEXTS, Windows(2, 4))
    (message,) = caplog.messages
    longest = max(map(len, packer.token_arrays(TEXTS)))
    assert "of 4 texts are longer than 2 windows hold, 10 tokens" in message
    assert f"the longest text has {longest} tokens" in message


@pytest.mark.parametrize("stride", [7, 8, 0, -1])
def test_no_token_may_lie_between_two_windows(packer, stride):
    with pytest.raises(UserError, match="must be from 1 to 6: a larger one"):
        tokenize_windows(packer, TEXTS, Windows(2, stride))
