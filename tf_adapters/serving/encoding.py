"""Tokenizes the texts of many requests together."""

from __future__ import annotations

import collections
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from tf_adapters.data.examples import Examples
from tf_adapters.heads.vector_head import VectorHead
from tf_adapters.serving.reading import Question


def encode(
    questions: Sequence[Question], packer_of: Callable[[int], Any]
) -> list[Examples]:
    """Returns the `Examples` of each question.

    Args:
        questions: List of questions.
        packer_of: Function that returns the packer for a maximum length.
    """
    found: dict[int, Examples] = {}
    groups = collections.defaultdict(list)
    for place, question in enumerate(questions):
        reading = question.reading
        if isinstance(reading.head, VectorHead):
            # The examples of such heads are the tokenized texts.
            groups[reading.max_length, len(question.fields)].append(place)
        else:
            found[place] = reading.head.encode(
                *(question.rows, question.fields),
                packer_of(reading.max_length),
                labeled=False,
            )
    for (max_length, _), places in groups.items():
        members = [questions[place] for place in places]
        encoded = _encode_texts(members, packer_of(max_length))
        found.update(zip(places, encoded, strict=True))
    return [found[place] for place in range(len(questions))]


def encode_each(
    questions: Sequence[Question], packer_of: Callable[[int], Any]
) -> list[Examples | Exception]:
    """Returns the `Examples` of each question, or the error that it causes.

    Args:
        questions: See `encode`.
        packer_of: See `encode`.
    """
    try:
        return [*encode(questions, packer_of)]
    except Exception as error:
        if len(questions) == 1:
            return [error]
    return [
        found
        for question in questions
        for found in encode_each([question], packer_of)
    ]


def _encode_texts(questions: Sequence[Question], packer: Any) -> list[Examples]:
    """Tokenizes questions with the same number of text fields."""
    number = len(questions[0].fields)
    texts = [
        [row[q.fields[field]] for q in questions for row in q.rows]
        for field in range(number)
    ]
    ids, segments = packer.tokenize_rows(*texts)
    examples, start = [], 0
    for question in questions:
        part = slice(start, start + len(question.rows))
        start = part.stop
        examples.append(
            Examples(
                ids[part],
                None if segments is None else segments[part],
                pad_id=packer.special_tokens.pad,
            )
        )
    return examples
