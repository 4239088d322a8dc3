"""Tests spans: losses, windows, and the characters of answers."""

import json
import re

from keras import ops
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.heads import token_vectors
from tests.references import heads_numpy
from tf_adapters import heads
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.tokens.special_tokens import SpecialTokens
from tf_adapters.heads import span_windows

HEAD = heads.Span()
RANDOM = np.random.default_rng(0)
WIDTH, TOKENS = 6, 7
LENGTHS = (7, 4, 5)
MASK = (np.arange(TOKENS) < np.array(LENGTHS)[:, None]).astype("int32")
TARGETS = np.array([[2, 5], [0, 0], [IGNORED, IGNORED]], "int32")


def _layer():
    return token_vectors.layer(HEAD, WIDTH)


def _outputs():
    return token_vectors.outputs(RANDOM, MASK, WIDTH)


def _expected(outputs, kernel, bias):
    return [
        heads_numpy.span(vectors[:length], kernel, bias, *ends)
        if ends[0] >= 0
        else 0.0
        for vectors, length, ends in zip(
            outputs["sequence_output"], LENGTHS, TARGETS, strict=True
        )
    ]


def test_loss_sees_no_padding_and_no_answer_that_is_missing():
    layer, outputs = _layer(), _outputs()
    losses = HEAD.loss(TARGETS, layer(outputs))
    weights = [w.astype("float64") for w in tiny.values(layer.weights)]
    expected = _expected(outputs, *weights)
    assert min(expected[:2]) > 0.3
    np.testing.assert_allclose(losses, expected, rtol=1e-5, atol=1e-6)


def test_gradients_by_differences():
    layer, outputs = _layer(), _outputs()
    with tf.GradientTape() as tape:
        loss = ops.sum(HEAD.loss(TARGETS, layer(outputs)))
    gradient = np.asarray(tape.gradient(loss, layer.kernel.value))
    kernel, bias = (w.astype("float64") for w in tiny.values(layer.weights))
    for place in ((0, 0), (3, 1), (5, 0)):
        step = np.zeros_like(kernel)
        step[place] = 1e-5
        above, below = (
            sum(_expected(outputs, kernel + sign * step, bias))
            for sign in (1, -1)
        )
        expected = (above - below) / 2e-5
        assert abs(expected) > 1e-3
        np.testing.assert_allclose(gradient[place], expected, rtol=1e-3)


class _Packer:
    """A token for each word, its id the word's first letter."""

    special_tokens = SpecialTokens(
        start=1, separators=(2,), end=2, pad=0, second_segment=1
    )

    def __init__(self, max_length):
        self.max_length = max_length

    def tokenize_with_offsets(self, texts):
        found = []
        for text in texts:
            spans = [match.span() for match in re.finditer(r"\S+", text)]
            ids = np.array([ord(text[begin]) for begin, _ in spans], "int32")
            found.append((ids, np.array(spans).reshape(-1, 2)))
        return found


FIELDS = ("question", "context")
CONTEXT = "Ä  b 電 dd, e f\u00a0g  h (i) j k l m n o p q r s t"


def _row(answer, context=CONTEXT, question="who is it"):
    label = [{"text": answer, "answer_start": context.index(answer)}]
    return {"question": question, "context": context, "label": label}


@pytest.mark.parametrize(("room", "stride"), [(5, 2), (5, 5), (1, 1), (40, 8)])
def test_windows_cover_the_text(room, stride):
    for count in (0, 1, 5, 6, 23):
        parts = list(span_windows.window_spans(count, room, stride))
        assert {i for p in parts for i in range(count)[p]} == set(range(count))
        assert all(p.stop - p.start <= room for p in parts)
        starts = [part.start for part in parts]
        assert all(d == stride for d in np.diff(starts))
        assert not parts or parts[-1].stop == count
        # Each token counts in the window with most context around it.
        owners = sum(
            np.bincount(
                np.arange(part.start, part.stop)[
                    span_windows._wider_until(number, parts) == 0
                ],
                minlength=count,
            )
            for number, part in enumerate(parts)
        )
        assert not count or (owners == 1).all()


@pytest.mark.parametrize("max_length", [24, 70, 128])
def test_each_answer_is_whole_in_a_window(max_length):
    """With BERT's stride of 128, shorter windows would not overlap."""
    context = " ".join("abcdefghij" * 40)
    row = {"question": "w", "context": context, "label": None}
    encoded = HEAD.encode([row], FIELDS, _Packer(max_length), labeled=False)
    windows = encoded.source.windows
    longest = min(HEAD.max_answer_tokens, windows[0].length // 2)
    for first in range(400 - longest):
        answer = (first, first + longest - 1)
        assert any(w.target(answer) != (0, 0) for w in windows)
    # At 384 tokens the stride is BERT's.
    encoded = HEAD.encode([row], FIELDS, _Packer(384), labeled=False)
    assert [w.first for w in encoded.source.windows] == [0, 128]


def test_each_answer_is_found_if_a_window_with_more_context_cuts_it():
    row = {"question": "w", "context": " ".join("abcdefghij" * 30)}
    encoded = HEAD.encode([row], FIELDS, _Packer(128), labeled=False)
    windows = encoded.source.windows
    for first in range(300 - HEAD.max_answer_tokens):
        answer = (first, first + HEAD.max_answer_tokens - 1)
        outputs = [np.zeros((len(ids), 2)) for ids in encoded.token_ids]
        for output, window in zip(outputs, windows, strict=True):
            output[window.target(answer), (0, 1)] = 9
        (found,) = HEAD.predictions(outputs, encoded.source)
        assert found[0][1:] == (2 * first, 18)


def test_a_token_counts_where_most_is_around_it():
    parts = [slice(0, 6), slice(3, 9)]
    first, second = (span_windows._wider_until(n, parts) for n in range(2))
    # Of tokens 3, 4, 5 the first window has 2, 1, 0 after; the second 0, 1, 2
    # before. Equal ones belong to the first.
    # A window with less context gets the end of the other one.
    assert first.tolist() == [0] * 5 + [9]
    assert second.tolist() == [6, 6, 0, 0, 0, 0]


def test_an_answer_that_a_window_lacks_is_the_first_token():
    head = heads.Span(stride=4)
    encoded = head.encode([_row("e f")], FIELDS, _Packer(14))
    # [1] who is it [2] + 8 tokens + [2]; the answer is tokens 4 and 5.
    firsts = [w.first for w in encoded.source.windows]
    assert firsts == [0, 4, 8, 12]
    assert encoded.targets.tolist() == [[9, 10], [5, 6], [0, 0], [0, 0]]
    assert encoded.token_ids[0].tolist() == [
        *(1, *map(ord, "wii"), 2),
        *(ord(c) for c in "Äb電defgh"),
        2,
    ]
    assert encoded.segment_ids[0].tolist() == [0] * 5 + [1] * 9
    assert encoded.counts.tolist() == [1] * 4


def test_an_answer_that_a_window_cuts_is_the_first_token_too():
    head = heads.Span(stride=4)
    encoded = head.encode([_row("g  h (i)")], FIELDS, _Packer(14))
    assert encoded.targets.tolist()[:2] == [[0, 0], [7, 9]]


def test_an_answer_elsewhere_than_it_says_trains_nothing():
    row = _row("e f")
    row["label"][0]["answer_start"] += 1
    encoded = HEAD.encode([row, _row("b")], FIELDS, _Packer(64))
    assert encoded.targets.tolist() == [[IGNORED, IGNORED], [6, 6]]
    assert encoded.counts.tolist() == [0, 1]


@pytest.mark.parametrize("answer", ["Ä", "b 電", "dd,", "g  h (i)", "t"])
@pytest.mark.parametrize("max_length", [12, 16, 128])
def test_answers_map_back_to_their_characters(answer, max_length):
    """Uses the targets as outputs, for any window."""
    head = heads.Span(stride=4)
    encoded = head.encode([_row(answer)], FIELDS, _Packer(max_length))
    outputs = []
    for ids, ends in zip(encoded.token_ids, encoded.targets, strict=True):
        output = np.zeros((len(ids) + 2, 2))
        for end, place in enumerate(ends):
            output[place, end] = 5.0
        outputs.append(output)
    (decoded,) = json.loads(json.dumps(head.decode(outputs, encoded.source)))
    assert decoded["answer"] == answer
    assert decoded["answer_start"] == CONTEXT.index(answer)
    best = decoded["best"]
    assert len({entry["answer"] for entry in best}) == len(best) <= 20
    assert best[0]["probability"] >= best[-1]["probability"]


def test_the_best_answer_is_that_of_a_search_through_all():
    head = heads.Span(stride=3, max_answer_tokens=4, num_best=50)
    encoded = head.encode([_row("b")], FIELDS, _Packer(15))
    outputs = [RANDOM.normal(size=(len(ids), 2)) for ids in encoded.token_ids]
    ((_, offsets),) = _Packer(0).tokenize_with_offsets([CONTEXT])
    scores = {}
    for window, output in zip(encoded.source.windows, outputs, strict=True):
        for first in range(window.length):
            for last in range(first, min(first + 4, window.length)):
                whole = (window.first + first, window.first + last)
                # The window with most context counts, if it has the span.
                if window.wider_until[first] > whole[1]:
                    continue
                score = (
                    output[window.begin + first, 0]
                    + output[window.begin + last, 1]
                )
                begin = offsets[window.first + first][0]
                end = offsets[window.first + last][1]
                text = CONTEXT[begin:end]
                scores[text] = max(score, scores.get(text, -np.inf))
    expected = sorted(scores.items(), key=lambda pair: -pair[1])[:50]
    (received,) = head.predictions(outputs, encoded.source)
    assert [text for text, _, _ in received] == [text for text, _ in expected]
    np.testing.assert_allclose(
        [score for _, _, score in received], [s for _, s in expected]
    )


def test_a_text_without_tokens_has_an_empty_answer():
    rows = [{"question": "who", "context": " "}, _row("b")]
    encoded = HEAD.encode(rows, FIELDS, _Packer(64), labeled=False)
    assert [w.row for w in encoded.source.windows] == [1]
    assert encoded.targets is None
    first, second = HEAD.decode([np.zeros((40, 2))], encoded.source)
    assert first == {"answer": "", "answer_start": None, "best": []}
    assert second["answer"]


def test_a_long_question_leaves_room_for_the_text():
    row = _row("b", question="w " * 80)
    for max_length, question in ((128, 64), (21, 13)):
        encoded = HEAD.encode([row], FIELDS, _Packer(max_length))
        assert {w.begin for w in encoded.source.windows} == {question + 2}
        assert max(map(len, encoded.token_ids)) <= max_length


@pytest.mark.parametrize(
    "name", ["stride", "max_answer_tokens", "num_best", "max_question_tokens"]
)
def test_numbers_that_give_no_window_or_answer_are_refused(name):
    least = int(name != "max_question_tokens")
    heads.Span(**{name: least})
    with pytest.raises(ValueError, match=f"`{name}` must be at least {least}"):
        heads.Span(**{name: least - 1})


def test_config_round_trip_through_json():
    head = heads.Span(stride=64)
    config = json.loads(json.dumps(heads.to_config(head)))
    assert heads.from_config(config) == head != HEAD
