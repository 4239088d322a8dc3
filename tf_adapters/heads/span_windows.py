"""Windows over a text that is too long, and answers in their tokens."""

import dataclasses

import numpy as np

from tf_adapters.data.encoded import IGNORED
from tf_adapters.data.tokens.windows import window_spans

NOT_FOUND = (IGNORED, IGNORED)


@dataclasses.dataclass(frozen=True)
class Window:
    """A question with a part of its text.

    Attributes:
        row: Place of its row.
        token_ids: The input, with its special tokens.
        begin: Place of the part's first token in the input.
        first: Place of the part's first token in the text.
        length: Number of the part's tokens.
        is_widest: Whether each token of the part has in no other window more
            tokens around it.
    """

    row: int
    token_ids: np.ndarray
    begin: int
    first: int
    length: int
    is_widest: np.ndarray

    def target(self, answer):
        """Returns the indices of an answer's ends in the input.

        Args:
            answer: First and last token in the text, or `NOT_FOUND`.

        Returns:
            Two indices; those of the first token where the answer is not whole
            in this window; `NOT_FOUND` stays.
        """
        if answer == NOT_FOUND:
            return NOT_FOUND
        first, last = (token - self.first for token in answer)
        if first < 0 or last >= self.length:
            return 0, 0
        return self.begin + first, self.begin + last


@dataclasses.dataclass(frozen=True)
class WindowSource:
    """What leads from windows back to rows.

    Attributes:
        rows: The rows.
        texts: The text of each row.
        offsets: Characters of each text's tokens, `(tokens, 2)` arrays.
        windows: List of `Window`.
    """

    rows: list
    texts: list
    offsets: list
    windows: list


def make_window_source(head, rows, fields, packer):
    """Returns the `Source` of rows; see `Span.encode`."""
    question_field, text_field = fields
    texts = [row[text_field] for row in rows]
    # Many questions share a text.
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


def _windows(head, row, question, text, packer):
    """Yields the windows of one row; none for a text without tokens."""
    special = packer.special_tokens
    room = packer.max_length - 2 - len(special.separators)
    # However short the input, a quarter of it is left for the text.
    question = question[: min(head.max_question_tokens, 3 * room // 4)]
    room -= len(question)
    # BERT's code lets windows of 128 tokens touch, and an answer on the seam
    # is whole in none. Here one of the longest answers fits an overlap, or the
    # overlap is half a window.
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
            _is_widest(number, parts),
        )


def _is_widest(number, parts):
    """Returns for each token of a part whether it has more context nowhere.

    Context is the smaller of the numbers of tokens before and after, and a
    hundredth of the window's length; the first of equals counts.
    """
    part = parts[number]
    # Parts further away do not overlap: to look at them takes minutes where a
    # text has thousands of parts.
    step = parts[1].start - parts[0].start if len(parts) > 1 else 1
    reach = (parts[0].stop - parts[0].start) // step + 1
    first = max(0, number - reach)
    near = parts[first : number + reach + 1]
    indices = np.arange(part.start, part.stop)
    contexts = np.array([_context(indices, other) for other in near])
    return contexts.argmax(axis=0) == number - first


def _context(indices, part):
    inside = (part.start <= indices) & (indices < part.stop)
    around = np.minimum(indices - part.start, part.stop - 1 - indices)
    return np.where(inside, around + 0.01 * (part.stop - part.start), -1.0)


def answer_tokens(answer, text, offsets):
    """Returns the first and the last token of an answer, or `NOT_FOUND`.

    Args:
        answer: Dict with `text` and `answer_start`, in characters.
        text: The text.
        offsets: Characters of its tokens, `(tokens, 2)`.
    """
    begin = answer["answer_start"]
    end = begin + len(answer["text"])
    if begin < 0 or text[begin:end] != answer["text"]:
        return NOT_FOUND
    (found,) = np.nonzero((offsets[:, 0] < end) & (offsets[:, 1] > begin))
    if not len(found):
        return NOT_FOUND
    return int(found[0]), int(found[-1])
