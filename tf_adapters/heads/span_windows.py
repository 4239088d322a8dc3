"""Overlapping windows of long texts, and the tokens of answers in them."""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.data.examples import IGNORED
from tf_adapters.data.tokens.windows import window_spans

if TYPE_CHECKING:
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.heads.span import Span

NOT_FOUND = (IGNORED, IGNORED)


@dataclasses.dataclass(frozen=True)
class Window:
    """A model input: a question with a part of the text that it is about.

    Attributes:
        row: Index of the row.
        token_ids: Token ids of the input, including special tokens.
        begin: Index of the part's first token in the input.
        first: Index of the part's first token in the text.
        length: Number of tokens in the part.
        wider_until: Integer array `(length,)`. For each token of the part, the
            end of the window that gives the token the most context: the index
            in the text after the window's last token. 0 if that is this window;
            if several windows give equal context, it is the first of them.
    """

    row: int
    token_ids: np.ndarray
    begin: int
    first: int
    length: int
    wider_until: np.ndarray

    def counts(self, first: int, last: int) -> bool:
        """Returns whether a span is an answer of this window.

        Several windows can contain a span. It counts in the window that gives
        its first token the most context, or in all others if that window ends
        before the span does.

        Args:
            first: Index of the span's first token in the part.
            last: Index of its last token in the part.
        """
        return self.first + last >= self.wider_until[first]

    def target(self, answer: tuple[int, int]) -> tuple[int, int]:
        """Returns the indices of an answer's first and last token in the input.

        Args:
            answer: Indices of its first and last token in the text, or
                `NOT_FOUND`.

        Returns:
            Two indices, or `NOT_FOUND` if `answer` is `NOT_FOUND`. If the
            window does not contain the whole answer, both are 0, the index of
            the input's first token.
        """
        if answer == NOT_FOUND:
            return NOT_FOUND
        first, last = (token - self.first for token in answer)
        if first < 0 or last >= self.length:
            return 0, 0
        return self.begin + first, self.begin + last


@dataclasses.dataclass(frozen=True)
class WindowSource:
    """The data for mapping the outputs of windows back to rows.

    Attributes:
        rows: List of dicts, the rows.
        texts: List with the text of each row.
        offsets: List with an array `(tokens, 2)` for each row: the index of
            the first character of each token in the text, and the index after
            its last character.
        windows: List of `Window`.
    """

    rows: list[Any]
    texts: list[Any]
    offsets: list[Any]
    windows: list[Any]


def make_window_source(
    head: "Span",
    rows: list[dict[str, Any]],
    fields: Sequence[str],
    packer: "Packer",
) -> WindowSource:
    """Splits the texts of rows into windows and returns a `WindowSource`.

    Args:
        head: `Span`.
        rows: List of dicts.
        fields: The keys of the question and of the text.
        packer: `TextPacker`.
    """
    question_field, text_field = fields
    texts = [row[text_field] for row in rows]
    # Tokenizes each text once, since many questions can share a text.
    different = list(dict.fromkeys(texts))
    tokens = packer.tokenize_with_offsets(different)
    tokens = dict(zip(different, tokens, strict=True))
    questions = packer.tokenize_with_offsets(
        [row[question_field] for row in rows]
    )
    windows = [
        window
        for place, (text, (question, _)) in enumerate(
            zip(texts, questions, strict=True)
        )
        for window in _windows(head, place, question, tokens[text][0], packer)
    ]
    return WindowSource(
        rows, texts, [tokens[text][1] for text in texts], windows
    )


def _windows(
    head: "Span",
    row: int,
    question: np.ndarray,
    text: np.ndarray,
    packer: "Packer",
) -> Iterator[Window]:
    """Yields the windows of one row; none for a text without tokens.

    `question` and `text` are arrays of token ids.
    """
    special = packer.special_tokens
    room = packer.max_length - 2 - len(special.separators)
    # Reserves at least a quarter of the input for the text.
    question = question[: min(head.max_question_tokens, 3 * room // 4)]
    room -= len(question)
    # In BERT's code, windows of 128 tokens do not overlap. No window then
    # contains an answer that extends over the border of two windows. Here,
    # windows overlap by the maximum length of an answer, but by at most half of
    # the tokens of the text that fit into a window.
    overlap = min(head.max_answer_tokens, room // 2)
    stride = min(head.stride, room - overlap)
    parts = list(window_spans(len(text), room, stride))
    before = [[special.start], question, special.separators]
    begin = sum(map(len, before))
    for number, part in enumerate(parts):
        ids = np.concatenate([*before, text[part], [special.end]])
        yield Window(
            row,
            ids.astype("int32"),
            begin,
            part.start,
            part.stop - part.start,
            _wider_until(number, parts),
        )


def _wider_until(number: int, parts: list[slice]) -> np.ndarray:
    """Returns `Window.wider_until` of a part.

    Overlapping parts have tokens in common. A token's context in a part is the
    smaller of the numbers of tokens before it and after it, plus a hundredth of
    the part's length. If several parts give equal context, the first one wins.

    Args:
        number: Index of the part in `parts`.
        parts: Slices of the text's tokens, one for each window.
    """
    part = parts[number]
    # Parts that are further away do not overlap. Comparing all of them would
    # take minutes for a text with thousands of parts.
    step = parts[1].start - parts[0].start if len(parts) > 1 else 1
    reach = (parts[0].stop - parts[0].start) // step + 1
    first = max(0, number - reach)
    near = parts[first : number + reach + 1]
    indices = np.arange(part.start, part.stop)
    widest = np.array([_context(indices, p) for p in near]).argmax(axis=0)
    ends = np.array([other.stop for other in near])
    return np.where(widest == number - first, 0, ends[widest])


def _context(indices: np.ndarray, part: slice) -> np.ndarray:
    inside = (part.start <= indices) & (indices < part.stop)
    around = np.minimum(indices - part.start, part.stop - 1 - indices)
    return np.where(inside, around + 0.01 * (part.stop - part.start), -1.0)


def answer_tokens(
    answer: dict[str, Any], text: str, offsets: np.ndarray
) -> tuple[int, int]:
    """Returns the indices of an answer's first and last token in its text.

    Args:
        answer: Dict with `text` and `answer_start`, in characters.
        text: The text that contains the answer.
        offsets: See `WindowSource`, for one row.

    Returns:
        Two integers, or `NOT_FOUND` if the text does not have the answer at
        this position.
    """
    begin = answer["answer_start"]
    end = begin + len(answer["text"])
    if begin < 0 or text[begin:end] != answer["text"]:
        return NOT_FOUND
    (found,) = np.nonzero((offsets[:, 0] < end) & (offsets[:, 1] > begin))
    if not len(found):
        return NOT_FOUND
    return int(found[0]), int(found[-1])
